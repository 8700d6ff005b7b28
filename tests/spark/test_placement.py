"""Which executor each slot goes to."""

from __future__ import annotations

import random
from collections import Counter

from eddyline.spark.placement import ExecutorPlace, Placement


def _executors(count: int, first: int = 0, cores: int = 2) -> list[ExecutorPlace]:
    return [ExecutorPlace(str(number), f"host-{number}", cores) for number in range(first, first + count)]


def _ids(places: list[ExecutorPlace]) -> list[str]:
    return [place.id for place in places]


def test_slots_are_spread_and_stay() -> None:
    placement, executors = Placement(), _executors(3)
    before = placement.place(executors, 6)
    assert set(Counter(_ids(before)).values()) == {2}
    assert placement.place(executors[::-1], 6) == before


def test_slots_of_a_lost_executor_come_up_elsewhere_and_stay() -> None:
    placement, executors = Placement(), _executors(3, cores=3)
    before = placement.place(executors, 6)
    lost = [slot for slot, place in enumerate(before) if place.id == "1"]
    left = [executor for executor in executors if executor.id != "1"]
    after = placement.place(left, 6)
    assert [slot for slot in range(6) if after[slot] != before[slot]] == lost, "the others stay"
    assert set(Counter(_ids(after)).values()) == {3}
    assert placement.place([*left, *_executors(1, first=3, cores=3)], 6) == after, (
        "cores are enough: nothing moves back"
    )


def test_an_executor_with_too_many_slots_gives_the_newest_away() -> None:
    placement, executors = Placement(), _executors(3)
    before = placement.place(executors, 6)
    crowded = placement.place(executors[:2], 6)
    lost = {slot for slot in range(6) if crowded[slot] != before[slot]}
    after = placement.place([*executors[:2], *_executors(1, first=3)], 6)
    assert {slot for slot in range(6) if after[slot] != crowded[slot]} == lost
    assert set(Counter(_ids(after)).values()) == {2}


def test_executors_that_come_one_by_one() -> None:
    placement, executors = Placement(), _executors(3)
    for count in (1, 2, 3):
        after = placement.place(executors[:count], 8)
    assert sorted(Counter(_ids(after)).values()) == [2, 3, 3]


def test_executors_of_the_same_host_come_first() -> None:
    executors = [ExecutorPlace("0", "x", 2), ExecutorPlace("1", "y", 2), ExecutorPlace("2", "x", 2)]
    placement = Placement()
    assert _ids(placement.place(executors, 3)) == ["0", "1", "2"]
    assert _ids(placement.place(executors[1:], 3)) == ["2", "1", "2"], "the arenas of slot 0 are on host x"


def test_large_executors_get_more_slots() -> None:
    executors = [ExecutorPlace("0", "x", 6), ExecutorPlace("1", "y", 2)]
    assert Counter(_ids(Placement().place(executors, 8))) == {"0": 6, "1": 2}


def test_any_course_of_executors() -> None:
    """Nothing moves without a reason, and no executor is crowded while another one is not."""
    rng = random.Random(3)
    for _ in range(200):
        slots = rng.randrange(1, 12)
        placement, there = Placement(), dict[str, ExecutorPlace]()
        before: list[ExecutorPlace] = []
        for step in range(12):
            for id_ in [id_ for id_ in there if rng.random() < 0.3]:
                del there[id_]
            there[str(step)] = ExecutorPlace(str(step), f"host-{rng.randrange(3)}", rng.randrange(1, 5))
            after = placement.place(list(there.values()), slots)
            assert len(after) == slots and all(there[place.id] == place for place in after)
            load = Counter(_ids(after))
            most = max(load[e.id] / e.cores for e in there.values())
            least = min((load[e.id] + 1) / e.cores for e in there.values())
            assert most <= 1 or most <= least, "one more slot elsewhere would be better"
            old = Counter(_ids(before))
            for was, now in zip(before, after, strict=False):
                assert was == now or was.id not in there or old[was.id] > was.cores
            assert placement.place(list(there.values()), slots) == after
            before = after


def test_slots_come_and_go() -> None:
    placement, executors = Placement(), _executors(3, cores=3)
    four = placement.place(executors, 4)
    six = placement.place(executors, 6)
    assert six[:4] == four and set(Counter(_ids(six)).values()) == {2}
    assert placement.place(executors, 3) == four[:3]
