"""The distribution manager: after each batch it decides which groups move to another slot, and which slots must spill.

It is a function: (its state, the slot map, the reports of the slots) -> (decisions, its new state). It has no clock, no
files and no randomness, and its state is part of the commit. So a restarted job decides as it would have without the
restart, and the simulation runs the same code.

The order of one decision:

1. Moves of some batches ago are compared with their predictions (verdicts.py); some are undone at once.
2. A key that is too much for one slot is shared by several, or not any more (hot_keys.py). Then no group moves.
3. If slots have been out of balance for `patience` batches, and the last choice was an `interval` ago, groups are
   chosen (pairing.py): for memory first if memory has a limit, else for CPU first; for one measure at a time.
4. If no group moves and memory is balanced, slots may be forced to spill (forced.py).

These exclude each other: a slot that spills or sweeps takes part in no move; a slot of a move is in no other move until
there is a verdict, and is not forced to spill; groups on disk never move; a group that moved rests.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import Balanced, Decided, GroupMove, KeyShare
from eddyline.balance.explained import explained, too_heavy
from eddyline.balance.forced import SpillMode, forced
from eddyline.balance.hot_key import KeyCount
from eddyline.balance.hot_keys import shared_keys, shifted
from eddyline.balance.manager_state import (
    ManagerState,
    Pressing,
    Resting,
    WatchedMove,
    packed_cpu,
    packed_groups,
    unpacked_groups,
)
from eddyline.balance.measure import Measure, cpu_measure, memory_measure
from eddyline.balance.observed import observed
from eddyline.balance.pairing import Mask, Pair, Rules, after, paired
from eddyline.balance.reports import Loads, SlotReport
from eddyline.balance.slot_map import NOBODY, SlotMap
from eddyline.balance.tuning import DEFAULT, BalanceTuning
from eddyline.balance.verdicts import Verdict, verdicts
from eddyline.routing.decisions import Decision


@dataclass(frozen=True)
class _Seen:
    """What one decision looks at."""

    slot_map: SlotMap
    loads: Loads
    memory: Measure
    cpu: Measure
    movable: Mask
    """Groups that may move."""
    at: float

    @property
    def places(self) -> NDArray[np.int32]:
        return self.slot_map.places


class DistributionManager:
    """Decides for a job whose slots may hold `limit` bytes each."""

    def __init__(
        self, limit: int | None = None, spill: SpillMode = "lazy-disk", tuning: BalanceTuning = DEFAULT
    ) -> None:
        self._limit, self._spill, self._tuning = limit, spill, tuning

    def decide(
        self,
        state: ManagerState,
        slot_map: SlotMap,
        reports: Sequence[SlotReport],
        at: float,
        seconds: float,
        stay: Collection[int] = (),
        keys: Sequence[KeyCount] = (),
    ) -> tuple[Decided, ManagerState]:
        """The decisions after a batch. `at` is the time in seconds, which never goes back, `seconds` the time since the
        batch before, and `stay` are groups that must not move: they have rows on disk, or are moving already.
        `keys` are the keys that have many rows. The new state counts on it that all decisions are carried out before
        the next batch; if they are not, the old state goes on.

        >>> from eddyline.balance.reports import group_loads
        >>> one = SlotReport(0, memory=600, groups=group_loads([0, 1], [3, 3], [250, 350], [90, 10], [0, 0]))
        >>> two = SlotReport(1, memory=20, groups=group_loads([2, 3], [1, 1], [10, 10], [0, 0], [0, 0]))
        >>> manager, state, even = DistributionManager(limit=1000), ManagerState(), SlotMap(slots=2, groups=4)
        >>> for at in (60.0, 61.0, 62.0):
        ...     decided, state = manager.decide(state, even, [one, two], at, seconds=1.0)
        >>> [(move.groups, move.sender, move.receiver) for move in decided.moves]
        [((0,), 0, 1)]
        """
        loads = Loads.of(reports, slot_map.slots, slot_map.groups)
        state = replace(observed(state, loads, seconds, self._tuning), at=at)
        movable = np.ones(slot_map.groups, bool)
        movable[np.fromiter(stay, np.int64)] = False
        shareable = movable.copy()
        movable[[key.group for key in slot_map.hot]] = False
        cpu = cpu_measure(loads, state, slot_map, self._tuning)
        seen = _Seen(slot_map, loads, memory_measure(loads, self._limit, self._tuning), cpu, movable, at)
        state, undone, judged = self._judge(state, seen)
        state = self._press(state, seen)
        if not undone:
            shares, state = self._share(state, seen, keys, shareable)
            if shares:
                return Decided((), (), shares, verdicts=judged), state
        moves, state, more = self._choose(state, seen, undone)
        decided = Decided((*undone, *moves), notes=more, verdicts=judged)
        if self._limit is None or decided.moves or "memory" in state.pressing:
            return decided, state
        free = self._free(state, seen)
        spills, forcing = forced(state, loads, seen.places, free, self._limit, self._spill, self._tuning)
        return replace(decided, spills=spills), replace(state, forcing=forcing)

    # 1. What came of moves

    def _judge(
        self, state: ManagerState, seen: _Seen
    ) -> tuple[ManagerState, tuple[GroupMove, ...], tuple[Decision, ...]]:
        state, last = self._later(state, seen), state.batch - self._tuning.trial_batches
        due = [one for one in state.watched if one.batch <= last]
        known, free = seen.loads.known, seen.loads.known & ~seen.loads.spilling
        found = verdicts(due, (seen.memory, seen.cpu), seen.places, seen.movable, known, free, self._tuning)
        undone = tuple(verdict.undo for verdict in found if verdict.undo is not None)
        if found:
            paid = sum(verdict.paid for verdict in found)
            longer = min(2 * state.factor, self._tuning.longest)
            state = replace(state, factor=1 if 2 * paid > len(found) else longer)
        state = replace(state, watched=tuple(one for one in state.watched if one.batch > last))
        state = replace(state, resting=self._rest(state, seen.at, found))
        if undone:
            state = replace(state, cpu=self._undone_cpu(state, seen, undone))
        return state, undone, tuple(verdict.decision for verdict in found)

    @staticmethod
    def _later(state: ManagerState, seen: _Seen) -> ManagerState:
        """The trial of a move begins when its parallel track is over: before that the sender is not relieved."""
        if not seen.slot_map.tracks:
            return state
        on_track = seen.slot_map.senders != NOBODY
        watched = (replace(w, batch=state.batch) if on_track[list(w.groups)].any() else w for w in state.watched)
        return replace(state, watched=tuple(watched))

    def _rest(self, state: ManagerState, at: float, found: Iterable[Verdict]) -> tuple[Resting, ...]:
        """The groups that rest: those that still do, and those of moves that did not pay."""
        still = tuple(resting for resting in state.resting if resting.until > at)
        more = [group for verdict in found if not verdict.paid for group in verdict.watched.groups]
        until = at + self._tuning.long_rest * self._tuning.interval
        return (*still, Resting(until, packed_groups(more))) if more else still

    def _undone_cpu(self, state: ManagerState, seen: _Seen, undone: Iterable[GroupMove]) -> bytes:
        cpu = state.slot_cpu
        for move in undone:
            amount = float(seen.cpu.weight[list(move.groups)].sum())
            cpu[move.sender] -= amount
            cpu[move.receiver] += amount
        return packed_cpu(cpu)

    # 2. Keys that several slots share

    def _share(
        self, state: ManagerState, seen: _Seen, keys: Sequence[KeyCount], shareable: Mask
    ) -> tuple[tuple[KeyShare, ...], ManagerState]:
        loads, slot_map = seen.loads, seen.slot_map
        busy = 0.0 if loads.backlog.any() else self._tuning.cpu_max * state.seconds
        found = shared_keys(state.keys, slot_map, keys, loads, seen.cpu, shareable, busy, self._tuning)
        state = replace(state, keys=found.pressing)
        if found.shares:
            mean = float(loads.cpu[loads.known].mean())
            state = replace(state, cpu=packed_cpu(shifted(state.slot_cpu, slot_map, found.shares, mean)))
        return found.shares, state

    # 3. Groups that move

    def _press(self, state: ManagerState, seen: _Seen) -> ManagerState:
        """Count the batches for which slots have been out of balance."""
        found: dict[Balanced, Pressing] = {}
        for measure in (seen.memory, seen.cpu) if seen.loads.known.any() else ():
            before, (most, least) = state.pressing.get(measure.name, Pressing()), measure.extremes(seen.loads.known)
            if measure.since(before.moving).unbalanced(most, least, measure.load, self._ratio(before)):
                found[measure.name] = replace(before, batches=before.batches + 1)
        return replace(state, pressing=found)

    def _ratio(self, pressing: Pressing) -> float:
        return self._tuning.stop if pressing.moving else self._tuning.ratio

    def _choose(
        self, state: ManagerState, seen: _Seen, undone: Sequence[GroupMove]
    ) -> tuple[tuple[GroupMove, ...], ManagerState, tuple[str, ...]]:
        wait, notes = self._tuning.interval * state.factor, tuple[str, ...]()
        if undone or (state.looked_at is not None and 0 <= seen.at - state.looked_at < wait):
            return (), state, ()
        for measure in (seen.memory, seen.cpu) if self._limit is not None else (seen.cpu, seen.memory):
            before = state.pressing.get(measure.name, Pressing())
            if before.batches < self._tuning.patience:
                continue
            pairs, state, more = self._pairs(state, seen, measure)
            notes += more
            if pairs:
                mean, predicted = float(measure.load[seen.loads.known].mean()), after(measure.load, pairs)
                moves = tuple(explained(measure, pair, predicted, mean, self._ratio(before)) for pair in pairs)
                return moves, self._moved(state, seen, measure, pairs), notes
        return (), state, notes

    def _pairs(
        self, state: ManagerState, seen: _Seen, measure: Measure
    ) -> tuple[tuple[Pair, ...], ManagerState, tuple[str, ...]]:
        other = seen.cpu if measure is seen.memory else seen.memory
        movable, before = seen.movable.copy(), state.pressing[measure.name]
        for resting in state.resting:
            movable[unpacked_groups(resting.groups)] = False
        tuning = self._tuning
        if measure is seen.cpu:
            movable &= self._pays_back(seen, before.batches)
        most = max(1, int(tuning.pairs_share * seen.slot_map.slots))
        rules = Rules(self._ratio(before), tuning.stop, most, tuning.least)
        begun = measure.since(before.moving)
        found = paired(begun, other, seen.places, movable, seen.loads.known, self._free(state, seen), rules)
        known = state.stuck_slots.get(measure.name, ())
        heavy = (too_heavy(measure, seen.slot_map, slot) for slot in found.stuck if slot not in known)
        notes = tuple(words for words in heavy if words is not None)
        pressing = {**state.pressing, measure.name: replace(before, moving=bool(found.pairs))}
        said = {**state.stuck_slots, measure.name: found.stuck}
        return found.pairs, replace(state, looked_at=seen.at, stuck_slots=said, pressing=pressing), notes

    def _pays_back(self, seen: _Seen, batches: int) -> Mask:
        """Groups that save the CPU of moving them soon enough. What has lasted for some time is expected to last as
        long again."""
        loads = seen.loads
        a_row = self._tuning.open_cost * float(loads.cpu.sum()) / max(float(loads.rows_in.sum()), 1.0)
        found: Mask = seen.cpu.weight * max(self._tuning.payback, batches) >= a_row * loads.group_rows
        return found

    def _free(self, state: ManagerState, seen: _Seen) -> Mask:
        """Slots that may take part in a move."""
        free = seen.loads.known & ~seen.loads.spilling
        free[[slot for one in state.watched for slot in (one.sender, one.receiver)]] = False
        return free

    def _moved(self, state: ManagerState, seen: _Seen, measure: Measure, pairs: tuple[Pair, ...]) -> ManagerState:
        """The state after these pairs have moved: CPU is as predicted, the moves are watched, and the groups rest."""
        mean, predicted = float(measure.load[seen.loads.known].mean()), after(measure.load, pairs)
        watched = (
            WatchedMove(
                tuple(pair.groups.tolist()),
                pair.sender,
                pair.receiver,
                measure.name,
                state.batch,
                float(measure.load[pair.sender] / mean),
                float(max(predicted[pair.sender], predicted[pair.receiver]) / mean),
                pair.amount / mean,
            )
            for pair in pairs
        )
        until = seen.at + self._tuning.rest * self._tuning.interval
        resting = Resting(until, packed_groups(np.concatenate([pair.groups for pair in pairs])))
        return replace(
            state,
            cpu=packed_cpu(after(state.slot_cpu, pairs, other=measure is seen.memory)),
            watched=(*state.watched, *watched),
            resting=(*state.resting, resting),
        )
