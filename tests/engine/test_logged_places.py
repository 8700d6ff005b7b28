"""Places of logged rows: beside a list of all rows of the stream in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eddyline.engine.intake import event_times
from eddyline.engine.sweep.logged_places import CountedSpan, LoggedPlaces
from tests.support.jobs import Row, batch_of, bound, schema
from tests.support.properties import examples

PLAIN = "SELECT a.k FROM a [ROWS {n}], b WHERE a.k = b.k"
SLIDING = "SELECT COUNT(*) FROM a [ROWS {n}], b [RANGE 4 MICROSECONDS SLIDE 2 MICROSECONDS] WHERE a.k = b.k"
"""Both use the column k of a, and not x."""

Rows = list[Row]


class Counted:
    """A stream whose rows from `least` on are logged in pieces of some rows; those from `until` on are left out."""

    def __init__(self, select: str, rows: Rows, least: int, until: int, held: int, piece: int) -> None:
        self.query = bound(select, a="k x", b="k x")
        self.size = self.query.sources[0].window.size
        self.logged = [row for row in rows if row[0] >= least]
        self._pieces = [
            batch_of(schema("k x"), self.logged[first : first + piece]) for first in range(0, len(self.logged), piece)
        ]
        watermark = min(until, 1 << 40)
        counted = sum(row[0] < watermark for row in rows)
        span = CountedSpan(least, until, watermark, counted, held)
        self.places = LoggedPlaces(self.query, 0, self.pieces, span, at_a_time=3)

    def pieces(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        return iter(enumerate(self._pieces))

    def place(self) -> list[int]:
        """By logged row its place, each asked for in a slice of a piece."""
        found: list[int] = []
        for number, batch in self.pieces():
            times = event_times(batch.column("ts"))
            for first in range(0, times.size, 2):
                found += self.places.of(number, first, times[first : first + 2]).tolist()
        return found

    def inside(self, at: int) -> Counter[Row]:
        """The logged rows in the window at a time, without what the query does not use."""
        least = self.places.least(np.array([at]))[0]
        rows = zip(self.logged, self.place(), strict=True)
        return Counter(row[:2] for row, place in rows if row[0] <= at and place >= least)


ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=40)
NUMBERS = st.tuples(st.integers(1, 12), st.integers(0, 5), st.integers(5, 12), st.integers(0, 10), st.integers(1, 9))


@given(ROWS, NUMBERS, st.sampled_from([PLAIN, SLIDING]))
@examples(300)
def test_a_window_has_the_rows_that_it_had_while_they_were_counted(rows: Rows, numbers: tuple, select: str) -> None:
    """Rows are in the window, from the time `held` on, that are among the last n of all rows up to that time."""
    n, least, until, ahead, piece = numbers
    held = least + ahead
    some = Counted(select.format(n=n), rows, least, until, held, piece)
    ordered = sorted(row for row in rows if row[0] < until)
    for at in range(held, until):
        last = [row for row in ordered if row[0] <= at][-n:]
        assert some.inside(at) == Counter(row[:2] for row in last if row[0] >= least), at


@given(ROWS, NUMBERS)
@examples(200)
def test_where_boundaries_to_come_ask_each_row_in_the_window_has_its_own_place(rows: Rows, numbers: tuple) -> None:
    n, least, until, ahead, piece = numbers
    some = Counted(SLIDING.format(n=n), rows, least, until, least + ahead, piece)
    ordered = sorted(row for row in rows if row[0] < until)
    counted = sum(row[0] < least + ahead for row in ordered)
    wanted = {(row[:2], place) for place, row in enumerate(ordered) if row[0] >= least and place + n >= counted}
    found = zip(some.logged, some.place(), strict=True)
    found = ((row[:2], place) for row, place in found if row[0] < until)
    assert {(row, place) for row, place in found if place + n >= counted} >= wanted


def test_ranks_are_computed_only_where_they_matter() -> None:
    rows = [(1, 5, 0), (2, 7, 0), (2, 6, 0), (2, 8, 0), (3, 9, 0), (4, 9, 0), (5, 9, 0)]
    whole = Counted(PLAIN.format(n=9), rows, 0, 10, 0, 9)
    assert whole.place() == [0, 1, 1, 1, 4, 5, 6], "none has left the window"
    assert Counted(PLAIN.format(n=3), rows, 0, 10, 0, 9).place() == [0, 2, 1, 3, 4, 5, 6], "they leave one by one"
    assert Counted(PLAIN.format(n=3), rows, 0, 10, 6, 9).place() == [0, 1, 1, 1, 4, 5, 6], "all have left before"
    assert Counted(SLIDING.format(n=9), rows, 0, 10, 0, 9).place() == [0, 2, 1, 3, 4, 5, 6], "they will leave"
