"""A small job with a checkpoint, taken through the batch protocol by hand: what the tests of its parts use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from eddyline.balance.slot_map import SlotMap
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.engine.watermarks import Silence
from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.batch_decision import BatchDecision, BatchKind
from eddyline.protocol.coordinator import Coordinator
from eddyline.protocol.home import Home, checkpoint_at
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.outlet import RESULTS
from eddyline.protocol.packing import Packer
from eddyline.protocol.parcel import Parcel
from eddyline.protocol.turn import Turn, put_together, take_turn
from eddyline.settings import Settings
from eddyline.testing.case import Case, FromPart, SelectParts, StreamDecl
from lab.fuzz.run import bound
from lab.fuzz.simulation import MemorySink

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
Row = tuple[int | None, int | None]


def rows(*values: Row) -> pa.RecordBatch:
    """Rows of (time, key)."""
    times, keys = [list(c) for c in zip(*values, strict=True)] if values else ([], [])
    return pa.record_batch([pa.array(times, SCHEMA.field(0).type), pa.array(keys, pa.int64())], schema=SCHEMA)


class World:
    """A join of `a` and `b`, by key unless it says otherwise; another life of it begins with another World in the same
    folder."""

    attempts = count()

    def __init__(
        self,
        folder: Path,
        windows: Sequence[str] = ("RANGE 20 MICROSECONDS", "RANGE 20 MICROSECONDS"),
        outputs: Sequence[str] = ("a.ts", "b.ts AS t", "a.k"),
        keys: Sequence[str] = (),
        slots: int = 1,
        host: str | None = "host",
        sink: MemorySink | None = None,
        silence: Silence | None = None,
        groups: int | None = None,
        where: str = "a.k = b.k",
        tuning: Tuning = DEFAULT,
        memory: int = 1 << 40,
        balance: str = "off",
        plan: str = "auto",
    ) -> None:
        """With `groups`, this many partition groups can leave memory, as `batch` is told, whatever `memory` is; unless
        `balance` is off they can move to other slots."""
        sources = tuple(FromPart(name, name, window) for name, window in zip("ab", windows, strict=True))
        select = SelectParts(tuple(outputs), sources, (where,), tuple(keys))
        case = Case((StreamDecl("a", SCHEMA, "ts"), StreamDecl("b", SCHEMA, "ts")), select, ())
        self.checkpoint, self.sink = checkpoint_at(str(folder / "checkpoint")), sink or MemorySink()
        self.checkpoint.open({"query": select.text})
        arenas = None if host is None else str(folder / host)
        query = bound(case)
        settings = Settings(slots=slots) if groups is None else Settings(slots=slots, memory=memory, groups=groups)
        settings = replace(settings, balance=balance, plan=plan)
        self.home = Home(query, settings, slots, self.checkpoint, arenas, self.sink.stage, tuning=tuning)
        home = self.home
        self.coordinator = Coordinator(self.checkpoint, home, self.sink, silence, self._move, self._place)
        self._then = Moves()
        self._to: SlotMap | None = None

    def _move(self, ledger: Ledger, *told: object) -> Moves:
        """Groups that are whole again are not swept."""
        return replace(self._then, sweep=tuple(g for g in self._then.sweep if g in ledger.generations.clean))

    def _place(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        return replace(so_far, slot_map=self._to or so_far.slot_map)

    def begin(self, kind: BatchKind = "rows", ended: Sequence[str] = (), offsets: object = None) -> BatchDecision:
        """The next batch."""
        batch = self.coordinator.commit.batch + 1
        decision = self.coordinator.begin(batch, kind, [batch] if offsets is None else offsets, ended)
        assert decision is not None
        return decision

    def parcels(self, decision: BatchDecision, **streams: Sequence[Row]) -> dict[int, list[Parcel]]:
        """What the split gives to each slot."""
        packer = Packer(self.home, decision, 0)
        found: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}
        for stream, values in streams.items():
            for slot, parcel in packer.rows(stream, rows(*values)):
                found[slot].append(parcel)
        for slot, counts in packer.finish():
            found[slot].append(counts)
        return found

    def turn(self, decision: BatchDecision, slot: int = 0, **streams: Sequence[Row]) -> Turn:
        """The turn of one slot."""
        parcels = self.parcels(decision, **streams)[slot]
        return take_turn(self.home, decision, slot, f"try{next(self.attempts)}", parcels)

    def batch(
        self,
        kind: BatchKind = "rows",
        ended: Sequence[str] = (),
        then: Moves = Moves(),  # noqa: B008
        to: SlotMap | None = None,
        **streams: Sequence[Row],
    ) -> BatchDecision:
        """A whole batch; `then` is what groups do before the next one, and `to` is where they are then, if they
        move."""
        self._then, self._to = then, to
        decision = self.begin(kind, ended)
        turns = [self.turn(decision, slot, **streams) for slot in range(decision.slots)]
        records = [turn.record for turn in turns]
        if self.home.partial:
            cells = [batch for turn in turns for batch in turn.partial]
            records.append(put_together(self.home, decision, f"try{next(self.attempts)}", cells))
        self.coordinator.finish(decision, records)
        return decision

    def run(
        self, batches: Sequence[Mapping[str, Sequence[Row]]], maps: Sequence[SlotMap | None]
    ) -> list[tuple[object, ...]]:
        """All batches, each with the slot map that holds after it, and the end of the streams. Returns the results."""
        for streams, to in zip(batches, maps, strict=True):
            self.batch(to=to, **streams)
        self.batch("end", ended=["a", "b"])
        return self.results

    def slot(self, number: int) -> Slot:
        """A slot, which is in this process."""
        found = self.home.keeper.open(number)
        self.home.keeper.leave(number, found)
        return found

    @property
    def results(self) -> list[tuple[object, ...]]:
        """All that was published."""
        return sorted(tuple(row.values()) for batch in self.sink.rows(RESULTS) for row in batch.to_pylist())


def in_one_slot(
    batches: Sequence[Mapping[str, Sequence[Row]]], folder: Path, **options: Any
) -> list[tuple[object, ...]]:
    """The results of the same job with one slot."""
    return World(folder / "one", **{"slots": 1, **options}).run(batches, [None] * len(batches))
