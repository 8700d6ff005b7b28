"""Rows in the order of groups: nothing is lost, sections have whole groups, and little is held at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.state.log.by_group import GroupedRows, in_sections
from tests.support.properties import examples

NUMBERS = st.lists(st.integers(0, 9), max_size=30)


def grouped(groups: list[int], first: int = 0) -> GroupedRows:
    values = [None if n % 7 == 0 else f"{g} {n}" for n, g in enumerate(groups, first)]
    batch = pa.record_batch({"g": groups, "d": pa.array(values, pa.string()).dictionary_encode()})
    return GroupedRows(batch, np.array(groups, np.int64))


def rows(sections: list[GroupedRows]) -> list[tuple[int, str]]:
    return [(row["g"], str(row["d"])) for some in sections for row in some.batch.to_pylist()]


@examples(100)
@given(st.lists(NUMBERS, max_size=4), st.lists(NUMBERS, max_size=4), st.integers(1, 400), st.integers(1, 400))
def test_all_rows_come_in_order(new: list[list[int]], old: list[list[int]], least: int, most: int) -> None:
    pieces = [grouped(sorted(groups), 100 * n) for n, groups in enumerate(old)]
    pieces = [piece for piece in pieces if piece.groups.size]  # those of a run are in the order of groups
    run = [piece for n, piece in enumerate(pieces) if all(p.groups[-1] <= piece.groups[0] for p in pieces[:n])]
    runs = [run, *([grouped(groups, 1000 * n)] for n, groups in enumerate(new, 1))]
    found = list(in_sections(runs, least, most))
    assert sorted(rows(found)) == sorted(rows([piece for some in runs for piece in some]))
    order = [group for some in found for group in some.groups.tolist()]
    assert order == sorted(order) and order == [g for g, _ in rows(found)]


def test_sections_have_whole_groups_of_a_size() -> None:
    runs = [[grouped(list(range(50)) * 10)], [grouped(list(range(50)) * 10, 500)]]
    sections = list(in_sections(runs, 1_000, 2_000))
    ranges = [(int(some.groups[0]), int(some.groups[-1])) for some in sections]
    assert len(sections) > 3 and all(a[1] < b[0] for a, b in pairwise(ranges))
    assert all(len(some.batch.column("d").dictionary) <= some.batch.num_rows for some in sections)


def test_a_large_group_stands_alone() -> None:
    batch = pa.record_batch({"n": np.arange(1010)})
    groups = np.array([1] * 5 + [2] * 1000 + [3] * 5)
    found = in_sections([[GroupedRows(batch, groups)]], 1000, 1 << 30)
    assert [np.unique(some.groups).tolist() for some in found] == [[1], [2], [3]]


def test_a_merge_holds_a_piece_of_each_run() -> None:
    loaded: list[int] = []

    def run(at: int) -> Iterator[GroupedRows]:
        for group in range(100):
            loaded.append(at)
            yield GroupedRows(pa.record_batch({"n": np.full(100, group)}), np.full(100, group))

    sections = in_sections([run(0), run(1)], 1000, 2000)
    next(sections)
    assert loaded.count(0) < 6 and loaded.count(1) < 6
    assert sum(some.batch.num_rows for some in sections) > 15_000


def test_a_group_with_many_rows_is_taken_in_parts() -> None:
    batch = pa.record_batch({"n": np.arange(10_000)})
    found = list(in_sections([[GroupedRows(batch, np.zeros(10_000, np.int64))]], 1000, 8000))
    assert max(some.batch.num_rows for some in found) <= 2000
    assert [n for some in found for n in some.batch.column(0).to_pylist()] == list(range(10_000))
