"""The spiller: decides after each batch which groups leave memory and which are swept before the next one.

Groups leave when a slot would hold more than `HIGH` of `memory` after one more batch like the last: the rest is room
for a batch that is larger, and for sweeps. Where most groups of the slot are cold already, it is less. They stay out
(cold), unless results may wait for the end of the streams: then their new rows are joined at least among themselves.
Where groups of a source that follows must leave, everything leaves: each result has a row of that source, so the rest
would make few results.

A group is swept before the results that it misses are later than the promise: when the query's watermark, after one
more batch, would be more than `delay` ahead of where it was when the group was clean last. Groups that must be swept
soon after are swept with it; all groups, where sources follow that have left, because their rows are read anyway.

Cold groups that are swept get warm if there is room for them: if their slot would hold at most `LOW` of `memory` with
all their rows. If the job continues without a delay, they are swept and get warm at once.

A slot may also be forced to let groups leave (balance/forced.py): then the same policy chooses among its groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from eddyline.balance.decided import ForcedSpill
from eddyline.balance.slot_map import SlotMap
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.engine.watermarks import Advanced
from eddyline.plan.bounds import FOREVER
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import COMBINED, Record
from eddyline.routing.decisions import Decision
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings
from eddyline.spill.accounts import Table
from eddyline.spill.policy import leaving

HIGH, MOSTLY_COLD, LOW = 0.75, 0.5, 0.3
"""The share of `memory` above which groups leave; where more than half of a slot's groups are cold: the more there is
to sweep, the more room sweeps need. The share up to which cold groups get warm."""
ROW_BYTES = 100
"""Bytes of a row in memory, where no row is there to tell."""
TOGETHER = 0.25
"""When a group must be swept, those follow at once that must be within this share of the delay."""


class Spiller:
    """Decides the moves of the groups of one job."""

    def __init__(self, query: BoundQuery, settings: Settings) -> None:
        assert settings.memory is not None
        self._memory, self._share = settings.memory, settings.spill_share
        self._policy, self._seed, self._groups = settings.spill_policy, settings.seed, settings.groups
        self._delay = spill_delay(query, settings)
        self._used: int | None = None
        """The query's watermark after the batch before."""
        self._decisions: list[Decision] = []

    def __call__(
        self,
        ledger: Ledger,
        advanced: Advanced,
        records: Sequence[Record],
        logged: int,
        slot_map: SlotMap | None = None,
    ) -> Moves:
        """What groups do before the next batch; `logged` is the number of rows in the log. Without a slot map any slot
        may have any group."""
        leave = {group for record in records for group in self._leaving(ledger, record, slot_map)}
        if self._delay is not None and max(leave, default=0) >= self._groups:
            leave = {group for record in records for group in record.spillable.table["group"].tolist()}
        if self._delay is None and ledger.generations.cold:
            return self._all_warm(ledger, tuple(sorted(leave)))
        due, cold = self._due(ledger, advanced), tuple(sorted(leave))
        warm = () if leave else self._warm(ledger, records, logged, due, slot_map)
        return Moves(cold, due, () if self._delay is None else cold, warm)

    def force(self, moves: Moves, record: Record, spill: ForcedSpill) -> Moves:
        """What groups do if a slot is forced to spill too. Groups of sources that follow stay: all slots have them."""
        table = record.spillable.table
        own = table[(table["group"] < self._groups) & ~np.isin(table["group"], moves.leave)]
        some = leaving(self._policy, own, spill.bytes, self._groups, self._seed)
        if not some.size:
            return moves
        why = f"slot {record.slot} is forced to spill {size_text(spill.bytes)}: {spill.why}"
        self._left(some, table, record, why)
        groups = tuple(some["group"].tolist())
        cool = moves.cool if self._delay is None else tuple(sorted((*moves.cool, *groups)))
        return replace(moves, leave=tuple(sorted((*moves.leave, *groups))), cool=cool)

    def decisions(self) -> list[Decision]:
        """The decisions since the last call."""
        found, self._decisions = self._decisions, []
        return found

    def _leaving(self, ledger: Ledger, record: Record, slot_map: SlotMap | None) -> Iterable[int]:
        """The groups of a slot that leave memory."""
        held, growth = record.held.bytes, max(0, record.spillable.growth)
        high = MOSTLY_COLD if self._mostly_cold(ledger, record.slot, slot_map) else HIGH
        above = held + growth - high * self._memory
        if above <= 0:
            return ()
        wanted = max(above, self._share * self._memory)
        table = record.spillable.table
        some = leaving(self._policy, table, wanted, self._groups, self._seed + ledger.epoch)
        if not some.size:
            return ()
        grows = f"grows by {size_text(growth)} a batch, memory is {size_text(self._memory)}"
        self._left(some, table, record, f"slot {record.slot} holds {size_text(held)} and {grows}")
        found: list[int] = some["group"].tolist()
        return found

    def _mostly_cold(self, ledger: Ledger, slot: int, slot_map: SlotMap | None) -> bool:
        """Whether most groups of a slot are cold; without a slot map, or where sources that follow are, of all."""
        cold = np.fromiter(ledger.generations.cold, np.int64)
        if slot_map is None or (cold >= self._groups).any():
            return 2 * cold.size > self._groups
        return bool(2 * (slot_map.places[cold] == slot).sum() > (slot_map.places == slot).sum())

    def _left(self, some: Table, table: Table, record: Record, why: str) -> None:
        """Note that some of the groups in a table leave."""
        size = int(some["bytes"].sum())
        what = f"{_groups(some.size)} of {table.size} in memory leave it, with {size_text(size)}"
        measured = {
            "groups": float(some.size),
            "rows": float(some["rows"].sum()),
            "bytes": float(size),
            "results": float(some["results"].sum()),
            "held": float(record.held.bytes),
            "growth": float(max(0, record.spillable.growth)),
        }
        self._decisions.append(Decision("spill", 0, what, why, measured, slot=record.slot))

    def _all_warm(self, ledger: Ledger, leave: tuple[int, ...]) -> Moves:
        """No group stays cold: the job had a delay before and has none now, so nothing would sweep the group until the
        end. Only new rows come into memory, so there is room."""
        clean, cold = (tuple(sorted(groups)) for groups in (ledger.generations.clean, ledger.generations.cold))
        self._decisions.append(
            Decision(
                "warm",
                0,
                f"{_groups(len(cold))} cold, all of which stay in memory again",
                "there is no spill_delay any more, so they would be cold until the streams end",
                {"groups": float(len(cold))},
            )
        )
        return Moves(leave, clean, (), cold)

    def _due(self, ledger: Ledger, advanced: Advanced) -> tuple[int, ...]:
        """The groups that are swept."""
        before, self._used = self._used, advanced.used
        clean = ledger.generations.clean
        if self._delay is None or advanced.used is None or not clean:
            return ()
        next_one = advanced.used + (0 if before is None else advanced.used - before)
        since = {epoch: ledger.marks[epoch].used for epoch in clean.values()}
        behind = {epoch: FOREVER if used is None else next_one - used for epoch, used in since.items()}
        if max(behind.values()) <= self._delay:
            return ()
        follow = any(group >= self._groups for group in ledger.generations.left)
        late = {epoch for epoch, time in behind.items() if follow or time > (1 - TOGETHER) * self._delay}
        due = tuple(sorted(group for group, epoch in clean.items() if epoch in late))
        most = max((time for time in behind.values() if time != FOREVER), default=0) / 1e6
        self._decisions.append(
            Decision(
                "sweep",
                0,
                f"{_groups(len(due))} of {len(clean)} with rows on disk are swept",
                f"results would be {most:g} s late after one more batch, spill_delay is {self._delay / 1e6:g} s",
                {"groups": float(len(due)), "late": most},
            )
        )
        return due

    def _warm(
        self,
        ledger: Ledger,
        records: Sequence[Record],
        logged: int,
        due: Sequence[int],
        slot_map: SlotMap | None,
    ) -> tuple[int, ...]:
        """Those of the groups that are swept, and maybe of sources that follow, whose rows stay in memory again."""
        cold = ledger.generations.cold
        slots = [record for record in records if record.slot != COMBINED]
        if not due or not cold or not slots:
            return ()
        known = [record.spillable.table for record in slots]
        rows, size = sum(int(t["rows"].sum()) for t in known), sum(int(t["bytes"].sum()) for t in known)
        whole = logged * (size / rows if rows else ROW_BYTES) / len(slots)
        rooms = {r.slot: LOW * self._memory - r.held.bytes - max(0, r.spillable.growth) for r in slots}
        room, ready = min(rooms.values()), [group for group in due if group in cold]
        if any(group >= self._groups for group in cold):
            found = list(cold) if whole <= room and set(due) >= set(ledger.generations.clean) else []
        elif slot_map is None:
            found = ready[: max(0, int(room / max(1.0, whole) * self._groups))]
        else:
            room, each = max(rooms.values()), max(1.0, whole * len(slots) / self._groups)
            by_slot = {slot: [group for group in ready if slot_map.slot_of(group) == slot] for slot in rooms}
            found = sorted(group for slot, own in by_slot.items() for group in own[: max(0, int(rooms[slot] / each))])
        if found:
            self._decisions.append(
                Decision(
                    "warm",
                    0,
                    f"{_groups(len(found))} of {len(cold)} cold ones stay in memory again",
                    f"all state would take about {size_text(round(whole))} a slot, {size_text(round(room))} are free",
                    {"groups": float(len(found)), "bytes": whole, "free": float(room)},
                )
            )
        return tuple(found)


def spill_delay(query: BoundQuery, settings: Settings) -> int | None:
    """How much later, in microseconds of event time, a result may come because rows of it are on disk: the setting, or
    the smallest window. None if there is neither: then it may come at the end."""
    if settings.spill_delay is not None:
        return round(settings.spill_delay * 1e6)
    return min((s.window.size for s in query.sources if s.window.kind is WindowKind.RANGE), default=None)


def _groups(count: int) -> str:
    return "1 group" if count == 1 else f"{count} groups"
