"""The rules for thresholds, counters and the scheduler queue; no queue starves, and no tuple is lost or repeated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.packet import Packet
from eddyline.routing.scheduler import Scheduler
from eddyline.routing.tuning import DEFAULT
from eddyline.testing.clock import ManualClock
from tests.support.made_up import packet, routes

FIRST, LARGEST, LIMIT = DEFAULT.first_threshold, DEFAULT.largest_packet, DEFAULT.longest_wait

A, B, AB, AB1 = (0b001, 0), (0b010, 0), (0b011, 0), (0b011, 0b1)


def scheduler(size: int | None = None, clock: ManualClock | None = None) -> Scheduler:
    return Scheduler(routes(), size, clock or ManualClock())


def put(to: Scheduler, size: int, signature: tuple[int, int] = A, first: int = 0) -> MetaQueue:
    return to.put(packet(signature, first, size))


def rows_of(taken: Packet) -> list[int]:
    rows: list[int] = next(iter(taken.rows.values())).tolist()
    return rows


def test_a_queue_is_eligible_when_it_reaches_its_threshold() -> None:
    made = scheduler()
    queue = put(made, FIRST - 1)
    assert queue.threshold == FIRST and not queue.scheduled
    assert made.next() is None
    assert put(made, 1) is queue and queue.scheduled
    assert made.next() is queue
    assert made.take(queue).size == FIRST
    assert queue.threshold == FIRST and not queue.scheduled
    assert made.next() is None


def test_a_queue_that_is_twice_as_full_as_it_had_to_be_doubles_its_threshold() -> None:
    made = scheduler()
    for occupancy, after in [(2 * FIRST - 1, FIRST), (2 * FIRST, 2 * FIRST), (4 * FIRST - 1, 2 * FIRST),
                             (10 * FIRST, 4 * FIRST)]:  # fmt: skip
        queue = put(made, occupancy)
        assert made.next() is queue
        assert made.take(queue).size == occupancy
        assert queue.threshold == after


def test_a_threshold_does_not_outgrow_the_largest_packet() -> None:
    made = scheduler()
    queue = put(made, 1)
    queue.threshold = LARGEST // 2 + 1
    put(made, 2 * LARGEST)
    assert made.take(queue).size == LARGEST
    assert queue.threshold == LARGEST
    put(made, 3 * LARGEST)
    assert made.take(queue).size == LARGEST
    assert queue.threshold == LARGEST
    assert queue.occupancy == 1 + 3 * LARGEST


def test_a_queue_that_waits_counts_rounds_and_halves_its_threshold_after_the_limit() -> None:
    made = scheduler()
    queue = put(made, FIRST // 4)
    for _ in range(LIMIT):
        made.end_round()
    assert (queue.counter, queue.threshold) == (LIMIT, FIRST)
    made.end_round()
    assert (queue.counter, queue.threshold) == (LIMIT + 1, FIRST // 2)
    assert made.next() is None
    made.end_round()
    assert queue.threshold == FIRST // 4 and queue.scheduled
    made.end_round()
    assert queue.counter == LIMIT + 2  # an eligible queue counts no rounds
    assert made.next() is queue
    made.take(queue)
    assert (queue.counter, queue.threshold, queue.most_rounds) == (0, FIRST // 4, LIMIT + 2)


def test_an_empty_queue_neither_counts_nor_shrinks() -> None:
    made = scheduler()
    queue = put(made, FIRST)
    made.next()
    made.take(queue)
    for _ in range(3 * LIMIT):
        made.end_round()
    assert (queue.counter, queue.threshold) == (0, FIRST)


def test_a_threshold_never_falls_below_one() -> None:
    made = scheduler()
    queue = put(made, 1)
    for _ in range(4 * LIMIT):
        made.end_round()
    assert queue.threshold == 1 and made.next() is queue
    made.take(queue)
    for _ in range(4 * LIMIT):
        put(made, 1)
        assert made.next() is queue
        made.take(queue)
        made.end_round()
    assert queue.threshold == 1


def test_the_scheduler_queue_is_served_in_turn() -> None:
    made = scheduler()
    first, second = put(made, FIRST, B), put(made, FIRST, A)
    put(made, 5, B)
    assert made.next() is first
    made.take(first)
    put(made, FIRST, B)
    assert made.next() is second
    made.take(second)
    assert made.next() is first
    assert made.take(first).size == FIRST


def test_a_queue_that_was_emptied_out_of_turn_is_passed_over() -> None:
    made = scheduler()
    first, second = put(made, FIRST, A), put(made, FIRST, B)
    made.take(first)
    assert made.next() is second
    put(made, FIRST - 1, A)
    assert made.next() is None and not first.scheduled


def test_a_queue_that_was_emptied_before_it_was_eligible_is_not_flushed() -> None:
    made = scheduler()
    queue = put(made, 5)
    made.take(queue)
    assert made.least_done() is None


def test_a_fixed_size_is_threshold_and_largest_packet_and_stays() -> None:
    made = scheduler(3)
    queue = put(made, 2)
    assert made.next() is None
    put(made, 6, first=2)
    taken = []
    while (found := made.next()) is not None:
        taken.append(made.take(found).rows[0].tolist())
        made.end_round()
    assert taken == [[0, 1, 2], [3, 4, 5]] and queue.occupancy == 2
    for _ in range(5 * LIMIT):
        made.end_round()
    assert queue.threshold == 3 and made.next() is None  # it waits until queues are flushed
    assert made.least_done() is queue
    assert made.take(queue).rows[0].tolist() == [6, 7]
    assert made.least_done() is None


def test_as_many_as_come_in_at_a_time_are_enough_for_any_queue() -> None:
    made = scheduler()
    first = made.start(packet(A, 0, 10))
    assert first.scheduled and first.threshold == FIRST
    second = put(made, 9, AB)
    assert not second.scheduled
    put(made, 1, AB)
    assert second.scheduled
    assert [made.next(), made.next(), made.next()] == [first, second, None]
    made.start(packet(B, 0, FIRST + 50))
    assert not put(made, FIRST - 1, AB1).scheduled and put(made, 1, AB1).scheduled


def test_a_fixed_size_does_not_care_how_many_come_in() -> None:
    made = scheduler(20)
    assert not made.start(packet(A, 0, 10)).scheduled
    assert not put(made, 19, AB).scheduled and put(made, 1, AB).scheduled


def test_the_per_tuple_eddy() -> None:
    made = scheduler(1)
    queue = put(made, 4)
    for row in range(4):
        assert made.next() is queue
        assert made.take(queue).rows[0].tolist() == [row]
        made.end_round()
    assert made.next() is None and made.full == LARGEST


def test_a_fixed_size_above_the_largest_adaptive_one() -> None:
    made = scheduler(3 * LARGEST)
    queue = put(made, 3 * LARGEST - 1)
    assert made.next() is None and made.full == 3 * LARGEST
    put(made, 1)
    assert made.next() is queue and made.take(queue).size == 3 * LARGEST


def test_an_adaptive_packet_may_be_limited_and_a_fixed_one_not() -> None:
    made = scheduler()
    queue = put(made, FIRST)
    assert made.take(queue, 10).size == 10 and queue.occupancy == FIRST - 10
    assert made.take(queue, None).size == FIRST - 10
    fixed = scheduler(100)
    assert fixed.take(put(fixed, 250), 10).size == 100


def test_the_flush_begins_with_those_that_have_the_most_to_do() -> None:
    made = scheduler()
    for signature in (AB1, AB, B):
        put(made, 1, signature)
    order = []
    while (queue := made.least_done()) is not None:
        order.append(queue.entry.signature)
        made.take(queue)
    assert order == [B, AB, AB1]


def test_clear() -> None:
    made = scheduler()
    queues = [put(made, FIRST, A), put(made, 1, B), put(made, 5, AB)]
    for _ in range(3):
        made.end_round()
    made.clear()
    assert made.next() is None and made.least_done() is None
    assert [(q.occupancy, q.counter, q.scheduled) for q in queues] == [(0, 0, False)] * 3
    made.end_round()
    assert [q.counter for q in queues] == [0, 0, 0]
    put(made, FIRST, A)
    made.clear()
    put(made, 1, A)
    assert made.next() is None  # the dropped tuples do not make it eligible
    made.clear()
    put(made, FIRST, A, first=70)
    assert made.next() is queues[0]
    assert made.take(queues[0]).rows[0][0] == 70


def test_how_long_tuples_wait_is_measured() -> None:
    clock = ManualClock()
    made = scheduler(None, clock)
    queue = put(made, 5)
    clock.advance(2.0)
    put(made, FIRST)
    clock.advance(0.5)
    made.take(queue)
    assert (queue.longest_wait, queue.packets, queue.tuples) == (2.5, 1, FIRST + 5)
    clock.advance(100.0)  # nothing waits
    put(made, FIRST)
    clock.advance(1.0)
    made.take(queue)
    assert (queue.longest_wait, queue.packets, queue.tuples) == (2.5, 2, 2 * FIRST + 5)


@pytest.mark.parametrize("seed", range(6))
def test_no_queue_starves_and_no_tuple_is_lost(seed: int) -> None:
    """Fast and slow queues at random: a queue with tuples is eligible after at most LIMIT + log2(LARGEST) rounds."""
    rng, made = np.random.default_rng(seed), scheduler()
    signatures = [A, B, AB, AB1]
    weights = rng.dirichlet(np.full(4, 0.3))
    came, left = dict.fromkeys(signatures, 0), {s: [] for s in signatures}
    waited = dict.fromkeys(signatures, 0)
    """Rounds since a queue with tuples was last served, or got its first tuple."""
    bound, thresholds = LIMIT + math.ceil(math.log2(LARGEST)), set()
    for _ in range(3000):
        signature = signatures[int(rng.choice(4, p=weights))]
        size = int(rng.choice([1, 10, 300, 5000]))
        queue = put(made, size, signature, came[signature])
        came[signature] += size
        queue = made.next() or (queue if queue.occupancy >= made.full else None)
        if queue is None:
            continue
        assert queue.occupancy >= queue.threshold
        taken = made.take(queue)
        assert taken.size <= LARGEST
        left[taken.signature] += rows_of(taken)
        made.end_round()
        thresholds.add(queue.threshold)
        for s, q in made.queues.items():
            waited[s] = waited[s] + 1 if q.occupancy and not q.scheduled and q is not queue else 0
            assert waited[s] <= bound
            assert q.most_rounds <= bound and q.counter <= bound
    while (queue := made.next() or made.least_done()) is not None:
        left[queue.entry.signature] += rows_of(made.take(queue))
    for s in signatures:
        assert left[s] == list(range(came[s]))
        assert s not in made.queues or made.queues[s].tuples == came[s]
    assert len(thresholds) > 3
