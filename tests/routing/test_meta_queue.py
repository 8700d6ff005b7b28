"""A meta-queue returns its tuples in the order of arrival, in pieces of any size."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.routing.meta_queue import MetaQueue
from tests.support.made_up import packet, routes


def queue(signature: tuple[int, int] = (1, 0)) -> MetaQueue:
    return MetaQueue(routes().entry(signature), 8)


def test_tuples_leave_in_the_order_they_came() -> None:
    waiting = queue()
    waiting.put(packet((1, 0), 10, 3, number=1))
    waiting.put(packet((1, 0), 20, 2, number=2))
    assert waiting.occupancy == 5
    taken = waiting.take(4)
    assert taken.rows[0].tolist() == [10, 11, 12, 20] and taken.numbers.tolist() == [1, 1, 1, 2]
    assert (taken.size, taken.signature, waiting.occupancy) == (4, (1, 0), 1)
    waiting.put(packet((1, 0), 30, 1, number=3))
    taken = waiting.take(100)
    assert taken.rows[0].tolist() == [21, 30] and taken.numbers.tolist() == [2, 3]
    assert waiting.occupancy == 0


@pytest.mark.parametrize("seed", range(10))
def test_puts_and_takes_beside_a_list(seed: int) -> None:
    rng, waiting, twin, made = np.random.default_rng(seed), queue((3, 0)), [], 0
    for number in range(200):
        if rng.random() < 0.5 or not twin:
            n = int(rng.integers(1, 9))
            waiting.put(packet((3, 0), made, n, number))
            twin += [(row, number) for row in range(made, made + n)]
            made += n
        else:
            most = int(rng.choice([1, 3, 10, 1000]))
            taken = waiting.take(most)
            wanted, twin = twin[:most], twin[most:]
            assert taken.size == len(wanted)
            assert taken.rows[0].tolist() == taken.rows[1].tolist() == [row for row, _ in wanted]
            assert np.broadcast_to(taken.numbers, taken.size).tolist() == [n for _, n in wanted]
        assert waiting.occupancy == len(twin)


def test_ready_and_done_are_bits_of_sources_then_selections() -> None:
    """Selection 0 is on a.x, 1 on b.x, and 2 on a.k; the sources are a, b, c."""
    assert (queue((0b001, 0)).ready, queue((0b001, 0)).done) == (0b101_010, 0b000_001)
    assert (queue((0b001, 0b101)).ready, queue((0b001, 0b101)).done) == (0b000_010, 0b101_001)
    assert (queue((0b011, 0b001)).ready, queue((0b011, 0b001)).done) == (0b110_100, 0b001_011)
    assert (queue((0b111, 0b111)).ready, queue((0b111, 0b111)).done) == (0, 0b111_111)


def test_clear_forgets_what_waits() -> None:
    waiting = queue()
    waiting.put(packet((1, 0), 0, 5))
    waiting.counter, waiting.scheduled = 4, True
    waiting.clear()
    assert (waiting.occupancy, waiting.counter, waiting.scheduled) == (0, 0, False)
    waiting.put(packet((1, 0), 7, 1))
    assert waiting.take(10).rows[0].tolist() == [7]
