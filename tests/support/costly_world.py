"""A world in which time passes only inside user functions, by a made-up cost a tuple: what auto does in it is the same
every time, and what the best order would have cost can be computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.udf import udf
from eddyline.plan.steps import Select
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from lab.batch_driver import BatchDriver
from tests.support.jobs import bound, schema

US = 1e-6
Flags = NDArray[np.bool_]
_HERE: list[World] = []


class World:
    """An engine with the selections `costly_i(a.p<i>)`, each passing the rows whose flag i is set. With `join` there is
    also a table with so many rows for every other row of `a`, and none for those between."""

    def __init__(self, costs: Sequence[float], join: int | None = None, **settings: object) -> None:
        self.costs, self.clock = list(costs), ManualClock()
        self.noise: Callable[[], float] = lambda: 1.0
        self.calls = 0
        names = [f"p{i}" for i in range(len(costs))]
        calls = " AND ".join(f"costly_{i}(a.p{i})" for i in range(len(costs)))
        for i in range(len(costs)):
            _register(i)
        columns = {"a": " ".join([*names, "k"])} | ({} if join is None else {"t": "k"})
        more = "" if join is None else ", t"
        query = bound(f"SELECT a.p0 FROM a{more} WHERE {calls}{' AND a.k = t.k' * (join is not None)}",
                      tables=("t",), **columns)  # fmt: skip
        self.engine = BatchDriver(query, Settings(**settings), clock=self.clock)  # type: ignore[arg-type]
        self._schema, self._join = query.sources[0].stream.schema, join
        if join is not None:
            self.engine.load_table("t", pa.record_batch([pa.array([0] * join, pa.int64())], schema=schema("k", False)))
        self.eddy, self.rows, self.fed = self.engine.slot.executor.eddy, 0, []

    def feed(self, flags: Flags, batch: int = 10_000, undo: bool = False) -> float:
        """Rows with these flags; returns the seconds that it took."""
        begin, _HERE[:] = self.clock(), [self]
        for first in range(0, len(flags), batch):
            part = flags[first : first + batch]
            times = pa.array(np.arange(self.rows, self.rows + len(part)), pa.timestamp("us"))
            columns = [times, *(pa.array(part[:, i].astype(np.int64)) for i in range(part.shape[1]))]
            columns.append(pa.array(np.arange(len(part)) % 2))
            rows = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            found = self.engine.batch([("a", rows)], commit=not undo)
            passed = part.all(axis=1) * (1 if self._join is None else self._join * (np.arange(len(part)) % 2 == 0))
            assert sum(b.num_rows for b in found.results) == passed.sum()
            if undo:
                self.engine.wind_back()
            else:
                self.rows += len(part)
        return self.clock() - begin

    def counted(self) -> float:
        """What all calls so far cost without the noise."""
        entries = self.eddy.routes.entries.values()
        steps = [t for e in entries for t in e.steps if isinstance(t.step, Select)]
        return sum(t.tuples * self.costs[t.step.selection] for t in steps)  # type: ignore[union-attr]

    def best(self, flags: Flags) -> float:
        """The seconds that the best order takes for these rows."""
        return min(self.cost_of(order, flags) for order in permutations(range(len(self.costs))))

    def cost_of(self, order: Sequence[int], flags: Flags) -> float:
        """The seconds that an order takes for these rows."""
        left, seconds = np.ones(len(flags), bool), 0.0
        for i in order:
            seconds += int(left.sum()) * self.costs[i]
            left &= flags[:, i]
        return seconds

    def route(self) -> list[int]:
        """The selections in the order that packets take them now."""
        signature, order = (1, 0), []
        while (entry := self.eddy.routes.entries.get(signature)) is not None and entry.steps:
            chosen = entry.chosen or entry.steps[0]
            order.append(chosen.step.selection)  # type: ignore[union-attr]
            signature = chosen.after
        return order

    def changes(self) -> list[tuple[list[int], list[int], int]]:
        """(route before, route after, new decisions) of every change of the route from now on, as it happens."""
        seen: list[tuple[list[int], list[int], int]] = []
        router, log = self.eddy._router, self.eddy.decisions
        decide = router.decide

        def noted(entry: Entry) -> Traffic:
            before, decisions, chosen = self.route(), log.counts.total(), decide(entry)
            after = self.route()
            if before != after or log.counts.total() != decisions:
                seen.append((before, after, log.counts.total() - decisions))
            return chosen

        router.decide = noted  # type: ignore[method-assign]
        return seen


def _register(i: int) -> None:
    @udf(returns=pa.bool_(), name=f"costly_{i}")
    def costly(p: NDArray[np.int64]) -> Flags:
        world = _HERE[0]
        world.calls += 1
        world.clock.advance(len(p) * world.costs[i] * world.noise())
        passes: Flags = p == 1
        return passes


def independent(rng: np.random.Generator, rows: int, selectivities: Sequence[float]) -> Flags:
    """Flags that know nothing of each other."""
    flags: Flags = rng.random((rows, len(selectivities))) < np.array(selectivities)
    return flags
