"""A batch whose splits and slots are all in this process: no parcel is serialised.

    every slot opens -> rows are packed, each parcel is taken -> every slot joins -> every slot makes its results

Slots that stay in this process between their turns are committed with the batch, so expired rows are released at once;
the next turn finds that done (restoring.py). Without a checkpoint no restart follows. Then slots need not agree with
a later attempt on how long results wait for answers: they wait for the rows that wait now.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

import pyarrow as pa

from eddyline.engine.estimate import Estimate
from eddyline.engine.groups.online import Moment
from eddyline.engine.slot import Slot
from eddyline.engine.standing import StateSize
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.protocol.home import Home
from eddyline.protocol.packing import Packer
from eddyline.protocol.parcel import Parcel
from eddyline.protocol.record import Record
from eddyline.protocol.turn import OpenTurn, look_at, put_together
from eddyline.routing.gathered import TurnReport, snapshot
from eddyline.routing.report import Report

Arrived = tuple[str, pa.RecordBatch, bool]
"""(stream or table, rows, whether they are readable)."""


class InProcess:
    """Takes the batches of one job, and knows its slots between them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._attempts = 0
        self._looked: dict[int, tuple[Slot, Report]] = {}
        """By number, the slots of this process, and their work when somebody looked last."""
        self.pulse: Callable[[float], None] | None = None
        """Called often during a batch, with the share of its rows that are taken in. If it raises, the batch is
        abandoned."""
        self.moment = Moment()
        """What running estimates are computed from."""

    def run(self, decision: BatchDecision, arrived: Iterable[Arrived]) -> list[Record]:
        """Run a batch that the coordinator has begun; returns the records for it."""
        home, turns = self._home, list[OpenTurn]()
        self._attempts += 1
        attempt = uuid.uuid4().hex[:8] if home.keeps else str(self._attempts)
        home.pulse = None if self.pulse is None or decision.kind != "rows" else lambda _: self._beat(turns)
        know = None if home.here is None else self._know
        try:
            for number in range(decision.slots):
                turns.append(OpenTurn(home, decision, number, attempt, know))
            packer = Packer(home, decision, 0, Parcel)
            for name, rows, is_readable in arrived:
                for slot, parcel in (packer.rows if is_readable else packer.dead)(name, rows):
                    turns[slot].take(parcel)
            for slot, parcel in packer.finish():
                turns[slot].take(parcel)
            for turn in turns:
                turn.join()
            waits = None if home.keeps else min((turn.waits for turn in turns if turn.waits is not None), default=None)
            ended = [turn.end(waits) for turn in turns]
        except BaseException:
            for turn in turns:
                turn.drop()
            raise
        records = [turn.record for turn in ended]
        if home.partial:
            cells = [batch for turn in ended for batch in turn.partial]
            records.append(put_together(home, decision, attempt, cells))
        return records

    def committed(self, commit: Commit) -> list[StateSize] | None:
        """The batch of `commit` is committed. Returns the size of each slot since then; None if slots are elsewhere."""
        slots = self._home.here
        if slots is None:
            return None
        for slot in slots.values():
            slot.commit(commit.batch + 1)
        if self._home.split.seen is not None:
            cells = tuple(panes for slot in slots.values() for panes in slot.results.committed)
            seen = self._home.split.seen.now
            self.moment = Moment(cells, seen, commit.counts, commit.watermarks, commit.waits)
        return [StateSize(slot.state_rows, slot.state_bytes) for _, slot in sorted(slots.items())]

    def work(self) -> list[tuple[int, TurnReport | None]]:
        """The work of the eddy of each slot since the last call. Any thread may call it."""
        found = []
        with self._home.changing:
            for number, (slot, before) in self._looked.items():
                now = look_at(slot)
                self._looked[number] = slot, now
                found.append((number, snapshot(now.since(before), whole=True)))
        return found

    def costs(self) -> list[tuple[int, Estimate | None]]:
        """The costs that the optimizer of each slot estimates. Any thread may call it."""
        with self._home.changing:
            return [(number, slot.plans.estimate(slot.executor)) for number, (slot, _) in self._looked.items()]

    def _know(self, number: int, slot: Slot) -> None:
        known = self._looked.get(number)
        if known is None or known[0] is not slot:
            self._looked[number] = slot, look_at(slot)

    def _beat(self, turns: list[OpenTurn]) -> None:
        assert self.pulse is not None
        self.pulse(sum(turn.slot.executor.taken for turn in turns) / self._home.slots)
