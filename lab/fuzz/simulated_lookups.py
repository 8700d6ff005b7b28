"""Lookups over tables in memory: a seed says when answers come, in which order, how often, and which lookups fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from random import Random

import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request
from eddyline.state.key_values import values


class SimulatedLookups:
    """Answers requests from record batches."""

    def __init__(
        self,
        query: BoundQuery,
        tables: Mapping[str, pa.RecordBatch],
        random: Random,
        delay: float = 0.5,
        fails: Callable[[str, tuple[object, ...]], bool] = lambda table, key: False,
        kept: Mapping[str, AnswersKept] | None = None,
        fails_with: Callable[[str, int, tuple[object, ...]], bool] = lambda table, method, key: False,
        stalls: float = 0.0,
    ) -> None:
        """An answer does not come with a call of `answers` with the probability `delay`, unless it is waited for.
        `fails` says which keys cannot be looked up, `fails_with` those that a single access method cannot look up. With
        the probability `stalls` a method begins or ends to answer nothing at all."""
        self._methods = {s.stream.name: s.stream.methods for s in query.sources if s.stream.is_asked}
        self._tables, self._random, self._delay, self._fails = tables, random, delay, fails
        self._fails_with, self._stalls, self._stalled = fails_with, stalls, set[tuple[str, int]]()
        self._coming: list[Answer] = []
        self.kept = kept or {}
        self.requests: list[Request] = []
        """Everything that was asked."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Answers will come."""
        for request in requests:
            self.requests.append(request)
            if request.rank:
                mine = [a for a in self._coming if (a.table, a.method) == (request.table, request.method)]
                coming = {key for answer in mine for key in values(answer.keys)}
                new = [key not in coming for key in values(request.keys)]
                request = replace(request, keys=request.keys.filter(pa.array(new, pa.bool_())))
            answers = self._answers(request)
            self._coming = [*answers, *self._coming] if request.rank else [*self._coming, *answers]

    def _answers(self, request: Request) -> list[Answer]:
        if request.takes_back:
            self._take_back(request)
            return []
        rows, method = self._tables[request.table], self._methods[request.table][request.method]
        if method.is_scan:
            sizes = [self._random.randint(1, 4) for _ in range(rows.num_rows)]
            parts, at = [], 0
            while at < rows.num_rows:
                size = sizes.pop()
                parts.append(Answer(request.table, request.method, request.keys, rows.slice(at, size), is_last=False))
                at += size
            return [*parts, Answer(request.table, request.method, request.keys, rows.slice(0, 0))]
        found, of_rows = [], list(values(rows.select(list(method.columns))))
        numbers = list(range(request.keys.num_rows))
        self._random.shuffle(numbers)
        while numbers:
            some = [numbers.pop() for _ in range(min(len(numbers), self._random.randint(1, 5)))]
            keys = request.keys.take(pa.array(some))
            asked = list(values(keys))
            failed = [number for number, key in enumerate(asked) if self._is_lost(request, key)]
            if failed:
                nothing, keys_failed = rows.slice(0, 0), keys.take(pa.array(failed))
                found.append(Answer(request.table, request.method, keys_failed, nothing, error="it does not answer"))
                keys = keys.take(pa.array([n for n in range(len(asked)) if n not in failed], pa.int64()))
                asked = list(values(keys))
            matching = [number for number, key in enumerate(of_rows) if key in asked]
            self._random.shuffle(matching)
            answer = Answer(request.table, request.method, keys, rows.take(pa.array(matching, pa.int64())))
            found += [replace(answer) for _ in range(self._random.choice((1, 1, 1, 2)))]
        return found

    def _is_lost(self, request: Request, key: tuple[object, ...]) -> bool:
        return self._fails(request.table, key) or self._fails_with(request.table, request.method, key)

    def _take_back(self, request: Request) -> None:
        """Half of the answers to come are those of keys that were taken back."""
        of = request.table, request.method
        for number, answer in enumerate(self._coming):
            if (answer.table, answer.method) == of and self._random.random() < 0.5:
                taken = replace(answer, rows=answer.rows.slice(0, 0), error=None, is_withdrawn=True)
                self._coming[number] = taken

    def answers(self, wait: float) -> list[Answer]:
        """Some of the answers, in any order; at least one if they are waited for without an end. Parts of a scan come
        in their order."""
        taken: list[Answer] = []
        while not taken and self._coming:
            blocked: set[tuple[str, int]] = set()
            for of in {(answer.table, answer.method): None for answer in self._coming}:
                if self._random.random() < self._stalls:
                    self._stalled ^= {of}
            for answer in self._coming:
                of = answer.table, answer.method
                if of in blocked or of in self._stalled or self._random.random() < self._delay:
                    blocked |= {of} if self._is_scan(answer) else set()
                else:
                    taken.append(answer)
            if wait != inf:
                break
        gone = set(map(id, taken))
        self._coming = [answer for answer in self._coming if id(answer) not in gone]
        scans = [answer for answer in taken if self._is_scan(answer)]
        others = [answer for answer in taken if not self._is_scan(answer)]
        self._random.shuffle(others)
        return [*scans, *others] if self._random.random() < 0.5 else [*others, *scans]

    def _is_scan(self, answer: Answer) -> bool:
        return self._methods[answer.table][answer.method].is_scan

    def close(self) -> None:
        """Nothing comes any more."""
        self._coming.clear()

    @property
    def asked(self) -> int:
        """The number of answers to come."""
        return len(self._coming)


def simulated_lookups(
    query: BoundQuery,
    tables: Mapping[str, pa.RecordBatch],
    seed: int,
    ages: Sequence[float] = (),
    fails: Callable[[str, tuple[object, ...]], bool] = lambda table, key: False,
    fails_with: Callable[[str, int, tuple[object, ...]], bool] = lambda table, method, key: False,
) -> Callable[[], SimulatedLookups]:
    """Makes lookups whose answers are late, in another order, come twice, or fail; and are forgotten soon, in some
    cases: at once, or after one of these times. Access methods stall for a while."""
    random = Random(f"lookups {seed}")
    asked = {s.stream.name: s.stream for s in query.sources if s.stream.is_asked}
    numbers = [(stream.name, n) for n, stream in ((n, s.stream) for n, s in enumerate(query.sources))]
    used = {name: {c for table, n in numbers if table == name for c in query.columns_of_source(n)} for name in asked}
    given = {}
    for name, stream in asked.items():
        columns = used[name] | {column for method in stream.methods for column in method.columns}
        given[name] = tables[name].select([c for c in tables[name].schema.names if c in columns])
    delay = random.choice((0.0, 0.3, 0.8))
    kept = {name: AnswersKept(random.choice((None, 0.0, *ages)), random.choice((None, 1, 3))) for name in asked}
    kept = {n: k for n, k in kept.items() if random.random() < 0.5 and not any(m.is_scan for m in asked[n].methods)}
    stalls = random.choice((0.0, 0.05, 0.3))
    return lambda: SimulatedLookups(query, given, random, delay, fails, kept, fails_with, stalls)
