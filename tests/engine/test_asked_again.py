"""Which tuples are made again when a table is asked again."""

from __future__ import annotations

import numpy as np

from eddyline.engine.asked_again import AskedAgain
from eddyline.routing.packet import Packet


def packet(**rows: list[int]) -> Packet:
    """Rows of sources s (0, a stream), t (1) and u (2)."""
    numbers = {"stu".index(name): np.array(of) for name, of in rows.items()}
    return Packet(numbers, (7, 0), np.array([0]), len(next(iter(rows.values()))))


def marked() -> AskedAgain:
    """Each source had five rows at the mark; rows 5 to 7 of t and u were asked for after it."""
    marks = AskedAgain()
    mark = marks.add([5, 5, 5])
    marks.note(1, 5, 8, mark)
    marks.note(2, 5, 8, mark)
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
    marks.prune({1: 8, 2: 6}, ())
    assert list(marks.rows) == [2] and list(marks.counts) == [1]
    marks.prune({2: 8}, ())
    assert not marks.rows and not marks.counts
    assert marks.add([9, 9, 9]) == 2, "its number was not used before"
