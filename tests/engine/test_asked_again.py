"""Which tuples are made again when a table is asked again."""

from __future__ import annotations

import numpy as np

from eddyline.engine.lookups.retry_marks import AskedAgain
from eddyline.routing.packet import Packet


def packet(**rows: list[int]) -> Packet:
    """Rows of sources s (0, a stream), t (1) and u (2)."""
    numbers = {"stu".index(name): np.array(of) for name, of in rows.items()}
    return Packet(numbers, (7, 0), np.array([0]), len(next(iter(rows.values()))))


def marked() -> AskedAgain:
    """Each source had five rows at the mark; rows 5 to 7 of t and u were asked for after it."""
    marks = AskedAgain()
    marks.forget(3, [5, 5, 5], 50)
    marks.note(1, 5, 8, 3)
    marks.note(2, 5, 8, 3)
    return marks


def kept(marks: AskedAgain, some: Packet) -> list[tuple[int, ...]]:
    own = marks.own(some)
    return [tuple(int(own.rows[source][i]) for source in sorted(own.rows)) for i in range(own.size)]


def test_a_row_that_is_asked_for_again_joins_only_what_came_later() -> None:
    assert kept(marked(), packet(s=[4, 5], t=[5, 5], u=[1, 1])) == [(5, 5, 1)]


def test_two_rows_that_came_again_do_not_ground_each_other() -> None:
    assert kept(marked(), packet(s=[4, 6], t=[5, 5], u=[6, 6])) == [(6, 5, 6)]


def test_a_row_for_which_a_tuple_waited_since_before_the_mark_grounds_another() -> None:
    marks = marked()
    assert kept(marks, packet(s=[4], t=[8], u=[6])) == [(4, 8, 6)], "row 8 of t was asked for before"


def test_what_is_not_needed_is_dropped() -> None:
    marks = marked()
    marks.base = 0
    marks.end([9, 9, 9], 90, {1: 8, 2: 6}, ())
    assert list(marks.rows) == [2] and marks.counts == {3: (5, 5, 5)}
    marks.end([9, 9, 9], 90, {2: 8}, ())
    assert not marks.rows and not marks.counts


def test_a_mark_is_as_the_next_batch_that_has_rows_or_as_the_end() -> None:
    marks = marked()
    marks.load(6, [7, 8, 8])
    marks.end([9, 9, 9], 90, {1: 0, 2: 0}, {4, 7})
    assert marks.counts == {3: (5, 5, 5), 4: (7, 8, 8), 7: (9, 9, 9)}
    assert marks.watermarks == {3: 50, 4: 90, 7: 90}


def test_rows_that_wait_for_the_watermark_come_with_it() -> None:
    marks = marked()
    marks.load(6, [0, 8, 8])
    marks.watermarks[4] = 60
    marks.released({0: [4, 6]}, [9, 9, 9])
    assert marks.counts == {3: (4, 5, 5), 4: (6, 8, 8)}


def test_a_mark_is_passed_when_all_earlier_rows_of_streams_are_gone() -> None:
    marks = marked()
    marks.load(6, [7, 8, 8])
    assert [marks.passed({0: first}) for first in (4, 5, 6, 7)] == [0, 3, 3, 6]
