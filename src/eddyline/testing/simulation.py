"""A case through the batch protocol, in one process, with whatever may go wrong: one seed, one story.

The driver, the split and the slots are the real ones (engine/coordinator.py, packing.py, turn.py); only Spark is not
there, and the sink is a dictionary. At fault points the story may say that everything dies: then only what is durable
is left (the checkpoint, the arenas, the sink), the job is started again, sometimes with other settings and another
number of slots, and goes on. Now and then a turn is taken twice, as when a task is retried or a lost one comes back.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pyarrow as pa

from eddyline import faults
from eddyline.engine.coordinator import Coordinator, Decision, Record
from eddyline.engine.packing import Packed, Packer
from eddyline.engine.parcel import packed, unpacked
from eddyline.engine.turn import RESULTS, Home, Turn, checkpoint_at, put_together, take_turn
from eddyline.errors import EddylineError
from eddyline.query.model import Query, WindowKind
from eddyline.settings import Settings
from eddyline.testing.case import Case
from eddyline.testing.run import Outcome

ROUTERS = ("auto", "fixed", "random", "lottery", "rank", "benefit")


class Crash(EddylineError):
    """Everything dies here."""


class MemorySink:
    """What is durable outside: rows that were staged, and what was published of them, by batch."""

    def __init__(self) -> None:
        self._staged: dict[str, Sequence[pa.RecordBatch]] = {}
        self.published: dict[int, dict[str, list[pa.RecordBatch]]] = {}

    def stage(self, sink: str, name: str, batches: Sequence[pa.RecordBatch]) -> str:
        """In a turn."""
        file = f"{sink}/{name}"
        assert file not in self._staged, "two attempts have one name"
        self._staged[file] = batches
        return file

    def publish(self, batch: int, staged: Mapping[str, Sequence[str]]) -> None:
        """At the driver."""
        self.published[batch] = {
            sink: [rows for file in files for rows in self._staged[file]] for sink, files in staged.items()
        }

    def forget_after(self, batch: int) -> None:
        """At the start."""
        self.published = {b: rows for b, rows in self.published.items() if b <= batch}

    def rows(self, sink: str) -> list[pa.RecordBatch]:
        """All that was published."""
        return [rows for batch in sorted(self.published) for rows in self.published[batch].get(sink, ())]


class Simulation:
    """One case, one story. `arenas` says whether slots live in arenas or in the process."""

    def __init__(self, case: Case, query: Query, settings: Settings, folder: str, seed: int, crashes: float = 0.02):
        self._case, self._query, self._settings, self._folder = case, query, settings, folder
        self._rng, self._crashes = Random(seed), crashes
        self._sink, self._attempts = MemorySink(), 0
        self.reached: Counter[str] = Counter()

    def run(self) -> Outcome:
        """To the end, however often it dies."""
        faults.inject(self._reach)
        try:
            while True:
                try:
                    return self._life()
                except Crash:
                    self._crashes *= 0.7
                    self._other_settings()
        finally:
            faults.inject(None)

    def _reach(self, point: str) -> None:
        self.reached[point] += 1
        if self._rng.random() < self._crashes:
            raise Crash(point)

    def _other_settings(self) -> None:
        if self._rng.random() < 0.5:
            self._settings = replace(
                self._settings,
                slots=self._rng.choice([1, 2, 3]),
                router=self._rng.choice(ROUTERS),
                packet=self._rng.choice([None, 1, 7, 1000]),
            )

    def _life(self) -> Outcome:
        rng, slots = self._rng, self._settings.slots or 1
        checkpoint = checkpoint_at(f"{self._folder}/checkpoint")
        checkpoint.open({"case": self._case.select.text})
        arenas = os.path.join(self._folder, "arenas") if rng.random() < 0.7 else None
        home = Home(self._query, self._settings, slots, checkpoint, arenas, self._sink.stage)
        coordinator = Coordinator(checkpoint, home.watermarks, home.horizon, self._sink, slots)
        batches = self._case.batches
        while not coordinator.commit.finished:
            number = coordinator.commit.batch + 1
            kind = "load" if number == 0 else "rows" if number <= len(batches) else "end"
            ended = batches[number - 1].ended if kind == "rows" else ()
            decision = coordinator.begin(number, kind, number, ended)
            assert decision is not None
            coordinator.finish(decision, self._turns(home, decision))
        return self._outcome(coordinator)

    def _turns(self, home: Home, decision: Decision) -> list[Record]:
        parcels: dict[int, list[bytes]] = {slot: [] for slot in range(decision.slots)}
        for slot, parcel in self._packed(home, decision):
            parcels[slot].append(packed(parcel))
        records, partial = [], []
        for slot, mine in parcels.items():
            turns = [self._turn(home, decision, slot, mine) for _ in range(1 + (self._rng.random() < 0.1))]
            turn = self._rng.choice(turns)
            records.append(turn.record)
            partial += turn.partial
        if home.partial:
            records.append(put_together(home, decision, self._attempt(), partial))
        return [Record.of_json(record.as_json()) for record in records]

    def _turn(self, home: Home, decision: Decision, slot: int, parcels: list[bytes]) -> Turn:
        while True:
            try:
                return take_turn(home, decision, slot, self._attempt(), map(unpacked, parcels))
            except Crash:
                if self._rng.random() < 0.5:  # the driver died as well
                    raise

    def _attempt(self) -> str:
        self._attempts += 1
        return str(self._attempts)

    def _packed(self, home: Home, decision: Decision) -> list[Packed]:
        """What the splits give: a task for each record batch, in any order."""
        case, found = self._case, list[Packed]()
        rows = list(case.tables.items()) if decision.kind == "load" else []
        if decision.kind == "rows":
            rows = list(case.batches[decision.batch - 1].rows)
        self._rng.shuffle(rows)
        for task, (stream, batch) in enumerate(rows):
            packer = Packer(home, decision, task)
            found += packer.rows(stream, batch)
            found.append(packer.finish())
        return found

    def _outcome(self, coordinator: Coordinator) -> Outcome:
        counts = {name: coordinator.commit.counts.get(name, 0) for name in _COUNTS}
        results = self._sink.rows(RESULTS)
        names = {s.stream.name for s in self._query.sources}
        for kind in ("late", "dead"):
            counts[kind] = sum(b.num_rows for name in names for b in self._sink.rows(f"{kind} {name}"))
        waits = self._query.group is not None or any(s.window.kind is WindowKind.ROWS for s in self._query.sources)
        last = self._sink.published.get(coordinator.commit.batch, {}).get(RESULTS, [])
        counts["held_back"] = 0 if waits else sum(batch.num_rows for batch in last)
        return Outcome(pa.Table.from_batches(results, self._query.schema), counts)


_COUNTS = ("rows_in", "rows_used", "rows_late", "rows_dead", "rows_out")
