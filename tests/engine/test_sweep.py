"""Sweeps in slices: the results are those of one slice, whatever the size of slices, and memory is that of a slice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eddyline.engine.slot import Slot
from eddyline.engine.sweep.clean_up import CleanUp
from eddyline.engine.sweep.logged_rows import LoggedRows, together
from eddyline.engine.sweep.sweep import Sweep
from eddyline.engine.tuning import DEFAULT
from eddyline.settings import Settings
from eddyline.spill.generations import Generations
from tests.support.jobs import batch_of, bound, schema, tuples
from tests.support.spilling import ListLog, Logged, group_of, may_spill

GROUPS = 4
JOINED = "SELECT a.x, b.x AS y FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.k = b.k"
CROSS = "SELECT a.x, b.x AS y FROM a [UNBOUNDED], b [UNBOUNDED] WHERE a.x < b.x"
ONE = next(key for key in range(99) if group_of(key, GROUPS) == 1)


class Swept:
    """All rows were on disk when a group was swept: each came in an epoch of its own, and left after it."""

    def __init__(
        self, select: str, keys: list[int], monkeypatch: pytest.MonkeyPatch, tables: str = "", **tuning: Any
    ) -> None:
        self.calls: Counter[str] = Counter()
        self.largest = 0
        for name in ("_divided", "_by_blocks"):
            self._count(monkeypatch, name)
        self._streams = [name for name in "abc" if f" {name} " in select]
        self._tables = tables
        query = bound(select, {}, tables, **dict.fromkeys(self._streams, "k x"))
        state = replace(DEFAULT.state, text_bytes=tuning.pop("text_bytes", DEFAULT.state.text_bytes))
        all_tuning = replace(DEFAULT, engine=replace(DEFAULT.engine, **tuning), state=state)
        self._slot = Slot(query, may_spill(Settings(check=True), GROUPS), tuning=all_tuning)
        self._rows = [batch_of(schema("k x"), [(n, key, n)]) for n, key in enumerate(keys)]
        moments = tuple(range(1, len(keys) + 1))
        generations = Generations(dict.fromkeys(range(GROUPS), moments), dict.fromkeys(range(GROUPS), 0))
        join = Sweep._join

        def observed(sweep: Sweep, clean_up: CleanUp, given: Any) -> None:
            self.calls["slices"] += 1
            self.largest = max(self.largest, sum(part.nbytes for parts in given.values() for part in parts))
            join(sweep, clean_up, given)

        monkeypatch.setattr(Sweep, "_join", observed)
        Sweep(self._slot, generations, ListLog(self._slot, list(self._logged())), self._relieve).run(np.arange(GROUPS))
        self.results = sorted(tuples(self._slot.drain()))

    def _count(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        original = getattr(Sweep, name)

        def counted(sweep: Sweep, *given: Any) -> Any:
            self.calls[name] += 1
            return original(sweep, *given)

        monkeypatch.setattr(Sweep, name, counted)

    def _logged(self) -> Iterator[Logged]:
        for first in range(0, len(self._rows), 7):
            some = self._rows[first : first + 7]
            (batch,) = pa.Table.from_batches(some).combine_chunks().to_batches()
            for stream in self._streams:
                rows = batch.drop_columns(["ts"]) if stream in self._tables else batch
                yield stream, rows, np.arange(first, first + len(some))

    def _relieve(self) -> None:
        self.calls["relieved"] += 1


def pairs(keys: list[int]) -> list[tuple[int, int]]:
    """The pairs of rows with one key that were never in memory together."""
    return [(a, b) for a, k in enumerate(keys) for b, other in enumerate(keys) if k == other and a != b]


def test_in_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [n % 10 for n in range(40)]
    swept = Swept(JOINED, keys, monkeypatch)
    assert swept.results == pairs(keys) and swept.calls["slices"] == 1 and swept.calls["relieved"]


@pytest.mark.parametrize("size", [7_000, 5_000, 2_000, 600])
def test_slices_are_as_large_as_they_may_be(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [n % 10 for n in range(40)]
    swept = Swept(JOINED, keys, monkeypatch, sweep_bytes=size)
    assert swept.results == pairs(keys) and swept.calls["slices"] > 1 and swept.largest <= size


def test_a_large_group_is_swept_by_sub_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [key for key in range(200) if group_of(key, GROUPS) == 1] * 2
    swept = Swept(JOINED, keys, monkeypatch, sweep_bytes=3_000)
    assert swept.results == pairs(keys) and swept.largest <= 3_000
    assert swept.calls["_divided"] == 1 and not swept.calls["_by_blocks"]


def test_a_large_key_is_swept_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [ONE] * 50
    swept = Swept(JOINED, keys, monkeypatch, sweep_bytes=3_000)
    assert swept.results == pairs(keys) and swept.largest <= 3_000
    assert swept.calls["_by_blocks"] == 1 and swept.calls["slices"] == 4 * 8


def test_there_are_not_too_many_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [ONE] * 50
    swept = Swept(JOINED, keys, monkeypatch, sweep_bytes=100, most_blocks=16)
    assert swept.results == pairs(keys) and swept.calls["slices"] == 16


@pytest.mark.parametrize("size", [1 << 40, 2_000, 500])
def test_where_no_key_joins_a_source(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of `a` have groups by all that they are, and wait for those of `b`, block by block."""
    swept = Swept(CROSS, [ONE] * 30, monkeypatch, sweep_bytes=size)
    assert swept.results == [(a, b) for a in range(30) for b in range(30) if a < b]
    assert (swept.calls["slices"] == 1) == (size == 1 << 40)


@pytest.mark.parametrize("size", [1 << 40, 3_000, 500])
def test_a_source_that_follows_by_a_key(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tuples of `a` and `b` wait in the order of the groups of another key; `c` is read slice by slice."""
    chain = (
        "SELECT a.x, b.x AS y, c.x AS z FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED] WHERE a.k = b.k AND b.x = c.x"
    )
    keys = [n % 5 for n in range(60)]
    swept = Swept(chain, keys, monkeypatch, sweep_bytes=size)
    assert swept.results == [(a, b, b) for a in range(60) for b in range(60) if a != b and keys[a] == keys[b]]


@pytest.mark.parametrize("size", [1 << 40, 2_000])
def test_rows_of_a_table_may_come_after_those_of_the_stream(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a batch nothing probes the SteM of the only stream; in a sweep rows of the table do."""
    keys = [n % 10 for n in range(40)]
    select = "SELECT a.x, b.x AS y FROM a [UNBOUNDED], b WHERE a.k = b.k"
    assert Swept(select, keys, monkeypatch, tables="b", sweep_bytes=size).results == pairs(keys)


def test_groups_without_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for select in (JOINED, CROSS):
        assert Swept(select, [], monkeypatch).results == []


def test_text_that_an_array_cannot_have_stays_in_several_parts() -> None:
    """An Arrow array of text has less than 2 GiB; here it is 100 bytes, and a row has 4 more than its text."""
    sizes = [10, 60, 500, 80, 10, 10, 10]
    parts = [
        LoggedRows(pa.record_batch({"t": ["x" * size]}), np.array([n]), np.array([7 * n]))
        for n, size in enumerate(sizes)
    ]
    found = list(together(parts, 100))
    assert [rows.came.tolist() for rows in found] == [[0, 7], [14], [21, 28], [35, 42]]
    assert [n for rows in found for n in rows.groups] == list(range(7))
    assert [len(t) for rows in found for t in rows.batch.column("t").to_pylist()] == sizes
    assert list(together([], 100)) == []


@pytest.mark.parametrize("select", [JOINED, CROSS])
def test_rows_in_several_parts(select: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [n % 10 for n in range(40)]
    assert Swept(select, keys, monkeypatch, text_bytes=200).results == Swept(select, keys, monkeypatch).results
