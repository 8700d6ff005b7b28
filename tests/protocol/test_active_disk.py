"""Lazy-disk and active-disk in jobs: slots spill by themselves or are forced to, groups move, and the results stay."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eddyline.balance.forced import SpillMode
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning
from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.spiller import Spiller
from eddyline.routing.decisions import Decision
from eddyline.settings import Settings
from tests.support.durable_world import Row, World
from tests.support.spilling import group_of

GROUPS, SLOTS, MEMORY = 30, 3, 60_000
KEYS = [[key for key in range(2000) if group_of(key, GROUPS) * SLOTS // GROUPS == slot] for slot in range(SLOTS)]
"""Keys by the slot that has them when a job begins."""
WINDOWS = ("RANGE 1 SECOND",) * 2


def batch(time: int, more: int = 1, each: int = 40) -> dict[str, list[Row]]:
    """Rows of which as many go to each slot, and `more` times as many to the first. Its keys come again in each batch,
    those of the others in every fourth, so that slot makes most of the results."""
    part = time // 10 % 4 * each
    keys = KEYS[0][:each] * more + [key for of_slot in KEYS[1:] for key in of_slot[part : part + each]]
    return {"a": [(time, key) for key in keys], "b": [(time + 1, key) for key in keys]}


class Job(World):
    """A job with a spiller and a balancer."""

    def __init__(self, folder: Path, mode: SpillMode, memory: int = MEMORY, delay: float | None = None) -> None:
        ticks, tuning = count(0.0, 100.0), BalanceTuning(trial_batches=1, rest=0.5)
        options: dict[str, Any] = {"slots": SLOTS, "groups": GROUPS, "balance": "moving-state", "host": None}
        settings = Settings(memory=memory, groups=GROUPS, spill=mode, spill_delay=delay, spill_share=0.1)
        super().__init__(folder, memory=memory, windows=WINDOWS, **options)
        self.spiller = Spiller(self.home.query, settings)
        self.balancer = Balancer(memory, lambda: next(ticks), tuning, mode, self.spiller.force)
        self.decisions: list[Decision] = []
        self.told: list[tuple[Adapted, AfterBatch, Adapted]] = []

    def _move(self, ledger: Ledger, *told: Any) -> Moves:
        return self.spiller(ledger, *told)

    def _place(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        found = self.balancer(so_far, after)
        self.decisions += self.balancer.decisions() + self.spiller.decisions()
        self.told.append((so_far, after, found))
        return found

    def kinds(self, kind: str) -> list[Decision]:
        return [decision for decision in self.decisions if decision.kind == kind]


def run(folder: Path, mode: SpillMode, batches: int = 18, **options: Any) -> Job:
    """A job beside one whose groups stay in memory: they must give the same results."""
    job, one = Job(folder / "many", mode, **options), World(folder / "one", windows=WINDOWS)
    for time in range(0, 10 * batches, 10):
        for each in (job, one):
            each.batch(**batch(time))
    for each in (job, one):
        each.batch("end", ended=["a", "b"])
    assert job.results == one.results and job.results
    return job


@pytest.mark.parametrize("delay", [None, 60e-6])
@pytest.mark.parametrize("mode", ["active-disk", "auto"])
def test_a_slot_that_makes_few_results_is_forced_to_spill(mode: SpillMode, delay: float | None, tmp_path: Path) -> None:
    job = run(tmp_path, mode, delay=delay)
    forced = job.kinds("force-spill")
    assert forced and all(decision.what.startswith(("slot 1 ", "slot 2 ")) for decision in forced)
    spills = [decision for decision in job.kinds("spill") if "is forced to spill" in decision.why]
    assert len(spills) == len(forced) and all("results per byte" in decision.why for decision in spills)


def test_lazy_disk_forces_nothing(tmp_path: Path) -> None:
    job = run(tmp_path, "lazy-disk")
    assert not job.kinds("force-spill") and job.kinds("spill"), "slots spill when their memory is full"


def test_forced_groups_are_those_of_the_slot_and_are_cold(tmp_path: Path) -> None:
    job = run(tmp_path, "active-disk")
    before, after, found = next(told for told in job.told if told[0].moves != told[2].moves)
    more = sorted({*found.moves.leave} - {*before.moves.leave})
    (slot,) = set(found.slot_map.places[more].tolist())
    assert slot in (1, 2) and set(more) <= set(found.moves.cool)
    table = after.slots[slot].spillable.table
    left, kept = (table[np.isin(table["group"], more) == which] for which in (True, False))
    assert kept.size and (left["results"] / left["bytes"]).max() <= (kept["results"] / kept["bytes"]).min()
    assert found.slot_map == before.slot_map, "no group moves in the same decision"


@pytest.mark.parametrize("mode", ["active-disk", "lazy-disk"])
def test_a_slot_spills_or_takes_part_in_a_move(mode: SpillMode, tmp_path: Path) -> None:
    """Groups leave, are swept and move all the time: the first slot gets most rows."""
    job = Job(tmp_path, mode, delay=60e-6)
    moved = spilt = 0
    for time in range(0, 300, 10):
        job.batch(**batch(time, more=1 + time % 3, each=25))
    for before, after, found in job.told:
        now, then = before.slot_map.places, found.slot_map.places
        groups = np.flatnonzero(now != then)
        busy = {*now[groups].tolist(), *then[groups].tolist()}
        spilling = {int(now[group]) for group in (*found.moves.leave, *found.moves.sweep)}
        assert not busy & spilling
        assert not set(groups.tolist()) & {*after.ledger.generations.left}
        moved, spilt = moved + bool(busy), spilt + bool(spilling)
    assert moved and spilt > 3


def test_what_is_on_disk_adds_up(tmp_path: Path) -> None:
    """Rows that left memory, and those that came to cold groups, are what the manager is told."""
    told: list[float] = []
    job = Job(tmp_path, "lazy-disk", memory=60_000)
    decide = job.balancer._manager.decide

    def seen(state: Any, slot_map: SlotMap, reports: Any, *rest: Any) -> Any:
        told.append(sum(report.on_disk for report in reports))
        return decide(state, slot_map, reports, *rest)

    job.balancer._manager.decide = seen  # type: ignore[method-assign]
    for time in range(0, 200, 10):
        job.batch(**batch(time))
    rows = sum(len(rows) for time in range(0, 200, 10) for rows in batch(time).values())
    tables = [record.spillable.table for record in job.told[-1][1].slots]
    held, size = (sum(float(table[name].sum()) for table in tables) for name in ("rows", "bytes"))
    assert told[0] == 0 and told[-1] == pytest.approx((rows - held) * size / held, rel=0.01) and rows > 1.2 * held
