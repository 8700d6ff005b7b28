"""The balancer: which slot has which partition group in the next batch, and which slots are forced to spill.

The distribution manager decides (balance/manager.py) from what slots have measured. Groups with rows on disk stay where
they are. A slot takes part in no move before a batch that begins with a sweep of its groups, or with groups of it that
leave memory: both at once would take the memory that they are about to free. So no slot of a move spills. Each move is
made by moving state or by parallel track (ways.py); groups on a track stay on it until it is over.

The manager's time is how long the job has run, which its state in the commit continues: it never goes back, whatever
happens to the clock of the host between two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from eddyline.balance.decided import ForcedSpill, GroupMove
from eddyline.balance.forced import SpillMode
from eddyline.balance.hot_key import HotKey, added
from eddyline.balance.hot_keys import with_shares
from eddyline.balance.manager import DistributionManager
from eddyline.balance.slot_map import NOBODY, SlotMap
from eddyline.balance.tuning import DEFAULT, BalanceTuning
from eddyline.protocol.adapted import Adapted, AfterBatch, Placer
from eddyline.protocol.ledger import Moves
from eddyline.protocol.record import Record
from eddyline.protocol.slot_reports import slot_reports
from eddyline.protocol.ways import Ways
from eddyline.routing.decisions import Decision

Force = Callable[[Moves, Record, ForcedSpill], Moves]
"""(what groups do, the record of a slot that is forced to spill, the spill) -> what groups do then."""


_instead: Placer | None = None


def place_by(placer: Placer | None) -> None:
    """From now on the balancers of this process do what this placer says, and do not ask the manager; None ends it.
    For tests."""
    global _instead
    _instead = placer


class Balancer:
    """Decides the slot maps of one job."""

    def __init__(
        self,
        memory: int | None,
        clock: Callable[[], float] = time.monotonic,
        tuning: BalanceTuning = DEFAULT,
        mode: SpillMode = "lazy-disk",
        force: Force | None = None,
        copies: float = 1.0,
        ways: Ways | None = None,
        aliases: Sequence[str] = (),
    ) -> None:
        """`memory` is the most that a slot may hold, `mode` says whether slots are forced to spill, and `force` chooses
        their groups; without it none is forced. `copies` is how often a row of the log is in memory (`Home.copies`).
        Without `ways` groups move by moving state. `aliases` are the names of the sources, for display."""
        self._manager = DistributionManager(memory, mode if force else "lazy-disk", tuning)
        self._clock, self._force, self._copies = clock, force, copies
        self._ways = ways or Ways("moving-state", None)
        self._aliases, self._before = aliases, clock()
        self._decisions: list[Decision] = []

    def __call__(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        """What is different in the next batch."""
        if _instead is not None:
            return _instead(so_far, after)
        now = self._clock()
        seconds, self._before = max(now - self._before, 1e-6), now
        moves, slot_map, state = so_far.moves, so_far.slot_map, so_far.balance
        reports = slot_reports(so_far, after, self._copies)
        on_tracks = np.flatnonzero(slot_map.senders != NOBODY).tolist()
        stay = _led(slot_map, (*after.ledger.generations.left, *moves.leave, *on_tracks))
        keys = added([key for record in after.slots for key in record.keys])
        decided, state = self._manager.decide(state, slot_map, reports, state.at + seconds, seconds, stay, keys)
        self._ways.observe(after.slots)
        decided = replace(decided, moves=tuple(self._in_its_way(move, after.slots) for move in decided.moves))
        for move in decided.moves:
            go = slot_map.tracked if move.way == "parallel-track" else slot_map.moved
            slot_map = go(move.groups, move.receiver)
        decided = replace(decided, shares=tuple(replace(s, spread=self._name(s.key)) for s in decided.shares))
        slot_map = slot_map.shared(with_shares(slot_map.hot, decided.shares))
        for spill in decided.spills:
            assert self._force is not None
            moves = self._force(moves, next(r for r in after.slots if r.slot == spill.slot), spill)
        self._decisions += decided.decisions
        return replace(so_far, moves=moves, slot_map=slot_map, balance=state)

    def _name(self, key: HotKey) -> str:
        return self._aliases[key.source] if self._aliases else f"source {key.source}"

    def _in_its_way(self, move: GroupMove, records: Sequence[Record]) -> GroupMove:
        chosen = self._ways.choose(move, records)
        return replace(move, way=chosen.way, why_so=chosen.why)

    def decisions(self) -> list[Decision]:
        """The decisions since the last call."""
        found, self._decisions = self._decisions, []
        return found


def _led(slot_map: SlotMap, groups: Collection[int]) -> set[int]:
    """Those of these groups that slots have by the map; the others are of sources that every slot has."""
    return {group for group in groups if group < slot_map.groups}
