"""Jobs whose tables are asked, with answers that a test scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from eddyline.bound.model import AccessMethod, BoundQuery
from eddyline.engine.lookups.answers import Failure
from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.fuzz.simulated_lookups import SimulatedLookups
from tests.support.jobs import Columns, Row, batch_of, bound, schema, tuples

Methods = Mapping[str, Sequence[tuple[str, ...]]]
"""By table, the columns of each access method; () for a scan."""


def asked(query: BoundQuery, methods: Methods, partial: bool = False) -> BoundQuery:
    """The query with access methods for its tables; with `partial`, its partial results are wanted too."""

    def of(name: str) -> tuple[AccessMethod, ...]:
        return tuple(map(AccessMethod, methods.get(name, ())))

    return replace(
        query,
        sources=tuple(replace(s, stream=replace(s.stream, methods=of(s.stream.name))) for s in query.sources),
        partial=partial,
    )


class Held:
    """Lookups that answer at once, but for tables that a test holds, and remember what was asked."""

    def __init__(self, inner: SimulatedLookups) -> None:
        self._inner, self.holds, self.fails = inner, False, False
        self.holds_table = ""
        """A table whose answers do not come."""
        self._late: list[Answer] = []
        self.kept: dict[str, AnswersKept] = {}
        self.requests: list[Request] = []

    def ask(self, requests: Sequence[Request]) -> None:
        self.requests += requests
        self._inner.ask(requests)

    def answers(self, wait: float) -> list[Answer]:
        if self.fails:
            raise RuntimeError("no answers")
        if self.holds and wait != float("inf"):
            return []
        found = [*self._late, *self._inner.answers(wait)]
        self._late = [answer for answer in found if answer.table == self.holds_table]
        return [answer for answer in found if answer.table != self.holds_table]

    def close(self) -> None:
        self._inner.close()

    @property
    def asked(self) -> int:
        return self._inner.asked

    @property
    def keys(self) -> list[tuple[str, tuple[object, ...]]]:
        """Every key that was asked, in order."""
        return [(r.table, tuple(row.values())) for r in self.requests for row in r.keys.to_pylist()]


class AskedJob:
    """A job on the engine whose tables are asked."""

    def __init__(
        self,
        select: str,
        tables: Mapping[str, Sequence[Row]],
        methods: Methods,
        settings: Settings | None = None,
        fails: Callable[[str, tuple[object, ...]], bool] = lambda table, key: False,
        **columns: Columns,
    ) -> None:
        whole = select.replace("SELECT PARTIAL", "SELECT")
        self.query = asked(bound(whole, None, tables, **columns), methods, partial=whole != select)
        self.schemas = {name: schema(text, name not in tables) for name, text in columns.items()}
        given = {name: batch_of(self.schemas[name], rows) for name, rows in tables.items()}
        self.lookups: list[Held] = []
        self.failed: list[Failure] = []

        def make() -> Held:
            self.lookups.append(Held(SimulatedLookups(self.query, given, Random(1), 0.0, fails)))
            return self.lookups[-1]

        self.engine = BatchDriver(self.query, settings or Settings(check=True), lookups=make)

    def feed(self, commit: bool = True, **rows: Sequence[Row]) -> list[Row]:
        """One micro-batch; returns its result rows."""
        fed = [(name, batch_of(self.schemas[name], some)) for name, some in rows.items()]
        result = self.engine.batch(fed, commit=commit)
        self.failed += result.failed
        return tuples(result.results)

    def end(self) -> list[Row]:
        """The end of all streams: all answers are waited for."""
        for lookups in self.lookups:
            lookups.holds = False
        return tuples(self.engine.end().results)

    @property
    def asked_keys(self) -> list[tuple[str, tuple[object, ...]]]:
        """Every key that was asked, in order."""
        return [key for lookups in self.lookups for key in lookups.keys]
