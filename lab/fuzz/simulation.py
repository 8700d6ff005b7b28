"""Run a case through the batch protocol in one process, with random failures that one seed determines.

The driver, the split and the slots are the real ones (protocol/coordinator.py, packing.py, turn.py); only Spark is
missing, and the sink is a dictionary unless another is given. A simulation may decide

- at a fault point, that a task dies, or everything: then only durable state remains (the checkpoint, the arenas, the
  sink), the job is started again, sometimes with other settings and another number of slots, and goes on;
- that a turn is taken twice, as when a task is retried, or once more after its batch was committed, by a zombie;
- that a batch was begun with other rows, or as the end, and failed after some slots had taken their turns;
- on which of two hosts, each with its own arenas, a slot takes its turn.

When the job has ended, the checkpoint may hold no files of these failures (`leftovers`).
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Protocol

import pyarrow as pa

from eddyline import faults
from eddyline.bound.model import BoundQuery
from eddyline.engine.lookups.look_up import Lookups
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import EddylineError, InternalError, JobError
from eddyline.plan.plan import Plan
from eddyline.protocol.adapted import Placer, stays
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.coordinator import Coordinator, Mover, Publisher, no_moves
from eddyline.protocol.home import Home, checkpoint_at
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.protocol.packing import REASON, Packed, Packer
from eddyline.protocol.parcel import packed, unpacked
from eddyline.protocol.record import Record
from eddyline.protocol.turn import Turn, put_together, take_turn
from eddyline.settings import Settings
from eddyline.state.key_values import values
from eddyline.testing.case import Case, Rows
from lab.fuzz.outcome import CaseOutcome, counted, held_back, without_lookups
from lab.fuzz.random_preferences import NextPreference
from lab.fuzz.spill_coverage import SpillCoverage
from lab.fuzz.trees import random_tree

ROUTERS = ("auto", "fixed", "random", "lottery", "rank", "benefit")
HOSTS: tuple[tuple[str | None, ...], ...] = ((None,), ("a",), ("a", "b"))
"""Hosts that have arenas; None: slots stay in the process."""

Parcels = dict[int, list[bytes]]
"""The parcels of a batch by slot, as bytes."""


class Crash(EddylineError):
    """The simulated death of a task or of the whole job."""


class SimulatedSink(Publisher, Protocol):
    """The sink of a simulated job: it survives every crash."""

    def stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        """Write rows in a turn; returns the names of what was staged."""

    def rows(self, outlet: Outlet, after: int = -1) -> list[pa.RecordBatch]:
        """All published rows of batches after this one."""


class MemorySink:
    """A sink in memory: the staged rows, and the published ones by batch."""

    def __init__(self) -> None:
        self._staged: dict[str, Sequence[pa.RecordBatch]] = {}
        self._published: dict[int, dict[Outlet, list[pa.RecordBatch]]] = {}

    def stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        file = f"{outlet.name}/{name}"
        assert file not in self._staged, "two attempts have one name"
        self._staged[file] = batches
        return [file]

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        self._published[batch] = {
            outlet: [rows for file in files for rows in self._staged[file]] for outlet, files in staged.items()
        }

    def forget_after(self, batch: int) -> None:
        self._published = {b: rows for b, rows in self._published.items() if b <= batch}

    def rows(self, outlet: Outlet, after: int = -1) -> list[pa.RecordBatch]:
        return [rows for batch, of in sorted(self._published.items()) if batch > after for rows in of.get(outlet, ())]


class Simulation:
    """One simulated run of a case. `strike` is called at every fault point, and may raise; without it, a task or the
    whole job dies at the share `crashes` of the points."""

    def __init__(
        self,
        case: Case,
        query: BoundQuery,
        settings: Settings,
        folder: str,
        seed: int,
        crashes: float = 0.02,
        sink: SimulatedSink | None = None,
        strike: Callable[[str], None] | None = None,
        plans: MakePlanSource = plan_source,
        tuning: Tuning = DEFAULT,
        mover: Mover | None = None,
        placer: Placer = stays,
        lookups: Callable[[], Lookups] | None = None,
        prefer: NextPreference | None = None,
    ) -> None:
        self._mover, self._placer, self._lookups, self._prefer = mover, placer, lookups, prefer
        self._case, self._query, self._settings, self._folder = case, query, settings, folder
        self._rng, self._crashes, self._plans, self._tuning = Random(seed), crashes, plans, tuning
        self._sink: SimulatedSink = sink or MemorySink()
        self._strike = strike or self._at_random
        self._strange = 0.0 if strike else 0.1
        """The share of batches with repeated turns, false starts and the like."""
        self._attempts, self._coverage, self._time = 0, SpillCoverage(), 0.0
        self.reached: Counter[str] = Counter()

    @property
    def checkpoint(self) -> str:
        """The folder of the checkpoint."""
        return os.path.join(self._folder, "checkpoint")

    def run(self) -> CaseOutcome:
        """Run the job to its end, restarting it after every crash."""
        while True:
            try:
                return self.live()
            except Crash:
                self._crashes *= 0.7
                slots = self._settings.slots or 1
                if self._rng.random() < 0.5:
                    self._other_settings()
                self._coverage.crashed(slots, self._settings.slots or 1)

    def live(self) -> CaseOutcome:
        """One start of the job: from the newest commit to the end; raises Crash if it dies."""
        faults.inject(self._reach)
        try:
            return self._live()
        finally:
            faults.inject(None)

    def _reach(self, point: str) -> None:
        self.reached[point] += 1
        self._strike(point)

    def _at_random(self, point: str) -> None:
        if self._rng.random() < self._crashes:
            raise Crash(point)

    def _other_settings(self) -> None:
        self._settings = replace(
            self._settings,
            slots=self._rng.choice([1, 2, 3]) if self._lookups is None else self._settings.slots,
            router=self._rng.choice(ROUTERS),
            plan=self._other_plan(),
            packet=self._rng.choice([None, 1, 7, 1000]),
        )

    def _other_plan(self) -> str:
        tree = random_tree(self._rng, len(self._query.sources), Plan(self._query).edges)
        text = self._rng.choice(["mjoin", tree.text([s.alias for s in self._query.sources])])
        return text if self._lookups is None else "mjoin"

    def _live(self) -> CaseOutcome:
        slots = self._settings.slots or 1
        checkpoint = checkpoint_at(self.checkpoint)
        checkpoint.open({"case": self._case.select.text})
        hosts = self._rng.choice(HOSTS) if self._strange else ("a",)
        of_job = self._query, self._settings, slots, checkpoint
        homes = [
            Home(
                *of_job,
                h and f"{self._folder}/host-{h}",
                self._sink.stage,
                plans=self._plans,
                tuning=self._tuning,
                lookups=self._lookups,
                age=self._age,
            )
            for h in hosts
        ]
        mover = self._mover if self._mover is not None and homes[0].spills else no_moves
        coordinator = Coordinator(checkpoint, homes[0], self._sink, mover=mover, placer=self._placer)
        batches = self._case.batches
        while not coordinator.commit.finished:
            number = coordinator.commit.batch + 1
            kind: BatchKind = "load" if number == 0 else "rows" if number <= len(batches) else "end"
            rows: Rows = tuple(self._case.tables.items()) if kind == "load" and self._lookups is None else ()
            ended: Sequence[str] = ()
            if kind == "rows":
                rows, ended = batches[number - 1].rows, batches[number - 1].ended
                self._false_start(coordinator, homes, number)
            if self._prefer is not None:
                homes[0].preferences.change(self._prefer(homes[0].preferences.text))
            decision = coordinator.begin(number, kind, number, ended)
            assert decision is not None
            parcels, before = self._packed(homes[0], decision, rows), coordinator.commit
            coordinator.finish(decision, self._turns(homes, decision, parcels))
            self._coverage.committed(decision, before, coordinator.commit)
            if not coordinator.commit.finished and self._rng.random() < self._strange:
                with contextlib.suppress(JobError):  # a zombie
                    self._turn(homes, decision, self._rng.randrange(decision.slots), parcels)
        left = leftovers(self.checkpoint)
        if left:
            raise InternalError(f"the job has ended and these files are left: {left}")
        return self._outcome(coordinator)

    def _false_start(self, coordinator: Coordinator, homes: Sequence[Home], number: int) -> None:
        """Begin a batch with other rows, or as the end, and abandon it."""
        if self._rng.random() >= self._strange:
            return
        other = self._case.batches[number - 1].undone
        decision = coordinator.begin(number, "end" if other is None else "rows", [number, "false"])
        assert decision is not None
        parcels = self._packed(homes[0], decision, other or ())
        for slot in self._rng.sample(range(decision.slots), self._rng.randint(1, decision.slots)):
            self._turn(homes, decision, slot, parcels)

    def _turns(self, homes: Sequence[Home], decision: BatchDecision, parcels: Parcels) -> list[Record]:
        records, partial = [], []
        for slot in parcels:
            turns = [self._turn(homes, decision, slot, parcels)]
            if self._rng.random() < self._strange:
                turns.append(self._turn(homes, decision, slot, parcels))
            turn = self._rng.choice(turns)
            records.append(turn.record)
            partial += turn.partial
        if homes[0].partial:
            records.append(put_together(homes[0], decision, self._attempt(), partial))
        return [Record.unpacked(record.packed()) for record in records]

    def _turn(self, homes: Sequence[Home], decision: BatchDecision, slot: int, parcels: Parcels) -> Turn:
        while True:
            try:
                home = self._rng.choice(homes)
                return take_turn(home, decision, slot, self._attempt(), map(unpacked, parcels[slot]))
            except Crash:
                if self._rng.random() < 0.5:  # the driver dies as well
                    raise

    def _age(self) -> float:
        """A clock by which answers grow old: it goes on by up to a second whenever it is read."""
        self._time += self._rng.random()
        return self._time

    def _attempt(self) -> str:
        self._attempts += 1
        return str(self._attempts)

    def _packed(self, home: Home, decision: BatchDecision, rows: Rows) -> Parcels:
        """The parcels of all splits: one task packs each record batch, in any order."""
        found: list[Packed] = []
        for task, (stream, batch) in enumerate(self._rng.sample(rows, len(rows))):
            packer = Packer(home, decision, task)
            found += packer.rows(stream, batch)
            found += packer.finish()
        parcels: Parcels = {slot: [] for slot in range(decision.slots)}
        for slot, parcel in found:
            parcels[slot].append(packed(parcel))
        return parcels

    def _outcome(self, coordinator: Coordinator) -> CaseOutcome:
        commit, sink = coordinator.commit, self._sink
        counts = counted(commit.counts)
        names = {s.stream.name for s in self._query.sources}
        failed = tuple(
            (name, key)
            for name in {s.stream.name for s in self._query.sources if s.stream.is_asked}
            for batch in sink.rows(Outlet("dead", name))
            for key in values(batch.drop_columns([REASON]))
        )
        for kind in ("late", "dead"):
            counts[kind] = sum(b.num_rows for name in names for b in sink.rows(Outlet(kind, name)))
        at_end = held_back(self._query, sink.rows(RESULTS, commit.batch - 1))
        later = self._mover is not None or self._lookups is not None  # groups on disk, and answers
        counts["held_back"] = 0 if later else at_end
        table = pa.Table.from_batches(sink.rows(RESULTS), self._query.schema)
        counts = without_lookups(counts, len(failed)) | {"dead": counts["dead"] - len(failed)}
        last = pa.Table.from_batches(sink.rows(RESULTS, commit.batch - 1), self._query.schema)
        return CaseOutcome(table, counts, frozenset(self._coverage.seen), failed, last)


def leftovers(checkpoint: str) -> list[str]:
    """Files in the checkpoint of an ended job other than its description, the list of files that it has read, and its
    last commit."""
    root = Path(checkpoint)
    files = sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
    files = [name for name in files if not name.startswith("files/")]
    commits = [name for name in files if name.startswith("commits/") and not Path(name).name.startswith(".")]
    return [name for name in files if name != "checkpoint.json" and name not in commits[-1:]]
