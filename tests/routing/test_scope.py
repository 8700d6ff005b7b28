"""Scopes: which operators an eddy runs, and which of their tuples are its own."""

from __future__ import annotations

import numpy as np

from eddyline.routing.packet import Packet
from eddyline.routing.scope import OldRows, Scope, whole
from tests.support.made_up import plan

OLD = OldRows({0: 10, 1: 20})


def pairs(*rows: tuple[int, int, int]) -> Packet:
    columns = np.array(rows).reshape(-1, 3).T
    return Packet(dict(enumerate(columns)), (0b111, 0), np.array([0]), len(rows))


def test_a_tuple_is_old_if_it_has_an_old_row_of_a_stream() -> None:
    """Source 2 is a table: its rows are neither old nor new."""
    packet = pairs((9, 20, 0), (10, 19, 0), (10, 20, 0), (9, 19, 99))
    assert OLD.among(packet).tolist() == [True, True, False, True]


def test_what_another_eddy_gives_is_not_its_own() -> None:
    packet = pairs((9, 20, 0), (10, 20, 0))
    shared = Scope(given=frozenset({0b111}), old=OLD, shared=frozenset({0b111}))
    assert shared.own(packet).rows[0].tolist() == [9]
    assert Scope(given=frozenset({0b111}), old=OLD, shared=frozenset({0b11})).own(packet) is packet
    assert Scope(given=frozenset({0b111})).own(packet) is packet


def test_the_operators_that_are_run() -> None:
    scope = Scope(given=frozenset(), operators=frozenset({0b11}), filters=frozenset({0b110}))
    assert scope.runs(0b11, 0b1) and scope.runs(0b11, 0b11)
    assert scope.runs(0b110, 0b110), "only selections on whole tuples"
    assert not scope.runs(0b110, 0b10) and not scope.runs(0b111, 0b111)
    assert whole(plan()).runs(0b111, 0b1) and whole(plan()).given == {0b111}
