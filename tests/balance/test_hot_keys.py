"""When the distribution manager lets several slots share a key."""

from __future__ import annotations

import numpy as np

from eddyline.balance.decided import Decided
from eddyline.balance.hot_key import KeyCount
from eddyline.balance.hot_keys import with_shares
from eddyline.balance.manager import DistributionManager
from eddyline.balance.manager_state import ManagerState
from eddyline.balance.reports import SlotReport, group_loads
from eddyline.balance.slot_map import SlotMap

GROUPS, SLOTS, KEY, GROUP = 64, 4, 77, 5
SECONDS = 10.0


class Job:
    """A job in which a key has some of the load of its group, wherever it is."""

    def __init__(self) -> None:
        self.map, self.manager, self.state = SlotMap(SLOTS, GROUPS), DistributionManager(), ManagerState()
        self.batches = 0

    def batch(self, load: float, rows: tuple[int, int] = (9000, 90), share: float = 0.9, backlog: int = 1) -> Decided:
        """A batch in which the group of the key has so much CPU, in multiples of what all others of a slot have; the
        key has these rows of two sources, which are this share of the rows in the group."""
        cpu = np.full(GROUPS, 1.0 / (GROUPS / SLOTS))
        cpu[GROUP] = load
        sharing = {GROUP: next((key.slots for key in self.map.hot), (self.map.slot_of(GROUP),))}
        reports = []
        for slot in range(self.map.slots):
            mine = [g for g in range(GROUPS) if slot in sharing.get(g, (self.map.slot_of(g),))]
            work = np.array([cpu[g] / len(sharing.get(g, (0,))) for g in mine])
            groups = group_loads(mine, np.full(len(mine), 100), np.full(len(mine), 10_000), np.ones(len(mine)), work)
            reports.append(SlotReport(slot, cpu=float(work.sum()), backlog=backlog, rows_in=10**6, groups=groups))
        keys = [KeyCount(source, KEY, GROUP, some, round(some / share)) for source, some in enumerate(rows) if some]
        self.batches += 1
        at = SECONDS * self.batches
        decided, self.state = self.manager.decide(self.state, self.map, reports, at, SECONDS, (), keys)
        for move in decided.moves:
            self.map = self.map.moved(move.groups, move.receiver)
        self.map = self.map.shared(with_shares(self.map.hot, decided.shares))
        return decided

    def until_shared(self, load: float, most: int = 50) -> int:
        """Batches until the key is shared."""
        for number in range(1, most + 1):
            if self.batch(load).shares:
                return number
        return most + 1


def test_a_key_with_the_load_of_several_slots_is_shared_after_a_few_batches() -> None:
    job = Job()
    assert job.until_shared(6.0) == 3
    (hot,) = job.map.hot
    assert (hot.code, hot.source, hot.slots[0]) == (KEY, 0, SlotMap(SLOTS, GROUPS).slot_of(GROUP))
    assert sorted(hot.slots) == list(range(SLOTS))


def test_a_worker_with_most_of_a_join_is_noticed_within_ten_batches() -> None:
    """86 % of all work is in the slot of one key."""
    assert Job().until_shared(0.86 / 0.14 * SLOTS) <= 10


def test_a_key_that_grows_slowly_is_noticed_within_ten_batches_of_being_too_much() -> None:
    job, load = Job(), 0.1
    while not any(job.batch(load).shares):
        load *= 1.005
    mean = (load + SLOTS - 1 / 16) / SLOTS
    assert load / 1.005**10 <= mean <= load  # the key has 0.9 of the load of its group, and 0.9 is too much


def test_a_key_that_groups_can_make_room_for_is_not_shared() -> None:
    job = Job()
    assert job.until_shared(0.8) > 50
    assert job.map.places[GROUP] == SlotMap(SLOTS, GROUPS).places[GROUP] or not job.map.hot


def test_a_group_of_many_keys_is_not_a_hot_key() -> None:
    job = Job()
    for _ in range(20):
        assert not job.batch(6.0, share=0.1).shares


def test_slots_that_have_little_to_do_share_nothing() -> None:
    job = Job()
    for _ in range(20):
        assert not job.batch(4.0, backlog=0).shares  # 4 s of 10


def test_a_key_that_cools_is_not_shared_any_more_and_does_not_come_and_go() -> None:
    job = Job()
    job.until_shared(6.0)
    for load in (0.8, 0.5, 0.8, 0.5) * 10:
        assert not job.batch(load).shares
    decided = [job.batch(0.05).shares for _ in range(10)]
    assert [len(shares) for shares in decided] == [0] * 9 + [1]
    assert not decided[-1][0].is_shared and not job.map.hot
    assert "alone again" in decided[-1][0].decision.what


def test_a_key_that_is_gone_is_not_shared_any_more() -> None:
    job = Job()
    job.until_shared(6.0)
    for _ in range(10):
        job.batch(0.0, rows=(0, 0))
    assert not job.map.hot


def test_the_source_with_the_most_rows_is_spread() -> None:
    job = Job()
    job.until_shared(6.0)
    for _ in range(9):
        assert not job.batch(6.0, rows=(1000, 9000)).shares
    job.batch(6.0, rows=(1000, 9000))
    assert [key.source for key in job.map.hot] == [1]


def test_a_shared_group_does_not_move() -> None:
    job = Job()
    job.until_shared(6.0)
    home = job.map.slot_of(GROUP)
    for _ in range(30):
        job.batch(6.0)
        assert job.map.slot_of(GROUP) == home
