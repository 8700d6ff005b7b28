"""A new part needs a line where parts are put together, and nothing else: here one that counts rows by group. The
counts are right after moves of groups, other numbers of slots, failed attempts, lost arenas and restarts."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from eddyline.balance.slot_map import SlotMap
from eddyline.bound.model import BoundQuery
from eddyline.codec import Snapshot
from eddyline.engine import parts
from eddyline.engine.executor import Executor
from eddyline.errors import InternalError
from eddyline.state.part import Cut, Named, Part, Versioned, named, restore_parts, save_parts
from eddyline.state.rows import Rows
from tests.support.durable_world import Row, World

GROUPS, BATCHES = 8, 8


class CountsSnapshot(Snapshot, frozen=True):
    """The counts now and at the last commit."""

    counts: tuple[dict[int, int], dict[int, int]]


class GroupCounts(Part):
    """The number of rows that were taken in, by group."""

    name, snapshot, adopts = "counts", CountsSnapshot, True

    def __init__(self) -> None:
        self.counts = Versioned[Counter[int]](Counter())

    def take_in(self, source: int, rows: Rows, new: slice) -> None:
        self.counts.now = self.counts.now + Counter(rows.groups(new).tolist())

    def commit(self, cut: Cut) -> None:
        self.counts.commit()

    def wind_back(self) -> None:
        self.counts.wind_back()

    def saved(self) -> CountsSnapshot:
        now, committed = self.counts.saved
        return CountsSnapshot((dict(now), dict(committed)))

    def restore(self, saved: CountsSnapshot) -> None:
        self.counts.restore((Counter(saved.counts[0]), Counter(saved.counts[1])))

    def durable(self, cut: Cut) -> Named:
        groups, counts = list(self.counts.now), list(self.counts.now.values())
        return [(self.name, pa.record_batch({"group": groups, "rows": pa.array(counts, pa.int64())}))]

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        self.counts.start(counts_in(own))

    def forget(self, groups: NDArray[np.int64]) -> int:
        self.counts.start(Counter({g: n for g, n in self.counts.now.items() if g not in set(groups.tolist())}))
        return 0

    def adopt(self, groups: NDArray[np.int64], state: Named) -> None:
        come = {g: n for g, n in counts_in(state).items() if g in set(groups.tolist())}
        self.counts.start(self.counts.now + Counter(come))

    @property
    def state_rows(self) -> int:
        return len(self.counts.now)


def counts_in(state: Named) -> Counter[int]:
    return sum(
        (Counter(dict(zip(*batch.to_pydict().values(), strict=True))) for batch in named(state, GroupCounts.name)),
        Counter(),
    )


def counter(query: BoundQuery, executor: Executor) -> Part | None:
    return GroupCounts()


def counts_of(world: World) -> Counter[int]:
    """The counts of all slots in the last commit."""
    segments = map(world.checkpoint.segment, world.coordinator.commit.small)
    return counts_in(
        [(name, batch) for segment in segments for name in segment.names for batch in segment.batches(name)]
    )


def story(rng: random.Random) -> list[dict[str, list[Row]]]:
    def rows(at: int) -> list[Row]:
        return [(at * 10 + rng.randrange(10), rng.randrange(30)) for _ in range(rng.randrange(8))]

    return [{"a": rows(at), "b": rows(at)} for at in range(BATCHES)]


@pytest.mark.parametrize("seed", range(12))
def test_a_part_of_another_lives_with_the_slot(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MAKERS", (*parts.MAKERS, counter))
    rng, host = random.Random(seed), "host"
    batches = story(rng)
    options = {"groups": GROUPS, "balance": "moving-state"}
    alone = World(tmp_path / "alone", slots=1, **options)  # type: ignore[arg-type]
    for streams in batches:
        alone.batch(**streams)
    world = World(tmp_path / "job", slots=2, host=host, **options)  # type: ignore[arg-type]
    sink, slots = world.sink, 2
    for streams in batches:
        if rng.random() < 0.4:  # an attempt of all slots, or of some, comes to nothing
            decision = world.begin()
            for slot in range(rng.randrange(decision.slots + 1)):
                world.turn(decision, slot, **streams)
        if rng.random() < 0.3:  # another process goes on, on this host, or on one without the arenas
            if rng.random() < 0.5:
                shutil.rmtree(tmp_path / "job" / host, ignore_errors=True)
            world = World(tmp_path / "job", slots=slots, host=host, sink=sink, **options)  # type: ignore[arg-type]
        to = None
        if rng.random() < 0.6:
            slots = rng.choice([1, 2, 3]) if rng.random() < 0.4 else slots
            to = SlotMap.of(slots, [rng.randrange(slots) for _ in range(GROUPS)])
        world.batch(to=to, **streams)
        seen = counts_of(world)
        assert seen.total() > 0 or not any(map(len, streams.values()))
    assert counts_of(world) == counts_of(alone) and counts_of(alone).total() == sum(
        len(b["a"] + b["b"]) for b in batches
    )
    world.batch("end", ended=["a", "b"])
    alone.batch("end", ended=["a", "b"])
    assert world.results == alone.results


def test_snapshots_of_parts_are_checked() -> None:
    class Others(Snapshot, frozen=True):
        counts: int

    part = GroupCounts()
    saved = save_parts([part, Part()])
    assert [one.name for one in saved] == ["counts"]
    with pytest.raises(InternalError, match="the slot has no part counts"):
        restore_parts([Part()], saved)
    part.snapshot = Others  # type: ignore[misc]
    with pytest.raises(InternalError, match="the part counts was saved in another layout"):
        restore_parts([part], saved)
