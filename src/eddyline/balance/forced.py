"""Active-disk (004, section 6): slots whose state is not productive are forced to spill, in favour of others.

With lazy-disk each slot spills by itself when its memory is full, and groups move while slots differ in memory. Then a
slot may spill groups that are more productive than what another slot keeps. With active-disk the manager forces the
less productive slot to spill. After that it has the least memory in use, and productive groups move to it.

A slot is forced if memory is balanced, if the query needs more memory than there is (M_query > M_cluster), if a slot
whose memory is running out has more than lambda times its results per byte, and if this has been so for some batches.
All that was forced out and is still on disk is at most M_query - M_cluster.

`auto` begins as lazy-disk and forces spills under the same conditions, but compares: if results per row have fallen
some batches after the first forced spill, no spill is forced for long.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eddyline.balance.decided import ForcedSpill
from eddyline.balance.manager_state import Forcing, ManagerState
from eddyline.balance.reports import Floats, Loads
from eddyline.balance.tuning import BalanceTuning

SpillMode = Literal["auto", "lazy-disk", "active-disk"]
"""Who decides that groups leave memory: the slot alone (lazy-disk), or the manager too."""


def productivity(loads: Loads, places: NDArray[np.int32]) -> Floats:
    """By slot the results per byte of the groups in its memory."""
    size, slots = np.bincount(places, loads.group_bytes, loads.memory.size), loads.memory.size
    return np.bincount(places, loads.group_results, slots) / np.maximum(size, 1.0)


def missing_memory(loads: Loads, limit: int, tuning: BalanceTuning) -> float:
    """M_query - M_cluster: the memory that the query needs in the next batches, less what slots may use before they
    spill."""
    needed = loads.memory + loads.on_disk + tuning.ahead * np.maximum(loads.growth, 0.0)
    return float(needed.sum() - tuning.memory_min * limit * loads.known.sum())


def judged(state: ManagerState, at: float, tuning: BalanceTuning) -> tuple[Forcing, str | None]:
    """What came of forced spills, once it is time to know, and that in words."""
    forcing = state.forcing
    if forcing.began is None or state.batch - forcing.began < tuning.forced_batches:
        return forcing, None
    good = state.output >= tuning.kept * forcing.before
    words = (
        f"forced spills {'go on' if good else 'stop'}: there were {forcing.before:.3g} results per row before them,"
        f" and are {state.output:.3g} now"
    )
    rests = forcing.rests_until if good else at + tuning.long_rest * tuning.interval
    return replace(forcing, began=None, rests_until=rests), words


def forced(
    state: ManagerState,
    loads: Loads,
    places: NDArray[np.int32],
    free: NDArray[np.bool_],
    limit: int,
    at: float,
    tuning: BalanceTuning,
) -> tuple[tuple[ForcedSpill, ...], Forcing]:
    """The slots that are forced to spill now. `free` are slots in no move; the caller has found memory balanced."""
    forcing = replace(state.forcing, bytes=int(min(state.forcing.bytes, loads.on_disk.sum())))
    rate = productivity(loads, places)
    full = loads.known & (loads.memory + tuning.ahead * np.maximum(loads.growth, 0.0) >= tuning.memory_min * limit)
    missing = missing_memory(loads, limit, tuning)
    best = int(np.where(full, rate, -np.inf).argmax())
    poor = free & loads.known & (rate * tuning.times < rate[best]) & (loads.memory > 0)
    resting = forcing.rests_until is not None and at < forcing.rests_until
    if resting or not full[best] or missing <= forcing.bytes or not poor.any():
        return (), replace(forcing, batches=0)
    forcing = replace(forcing, batches=forcing.batches + 1)
    if forcing.batches < tuning.patience:
        return (), forcing
    spills, room = list[ForcedSpill](), missing - forcing.bytes
    some = np.flatnonzero(poor)
    for slot in some[np.argsort(rate[some], kind="stable")][: max(1, int(tuning.pairs_share * rate.size))].tolist():
        size = int(min(tuning.push * limit, room, loads.memory[slot]))
        if size <= 0:
            break
        room -= size
        why = (
            f"slot {slot} makes {rate[slot]:.3g} results per byte and slot {best} {rate[best]:.3g}, more than"
            f" {tuning.times:g} times as many; the query needs {missing:.3g} bytes more than there are,"
            f" {forcing.bytes:.3g} were forced out already"
        )
        spills.append(ForcedSpill(slot, size, why))
    if spills:
        began = state.batch if forcing.began is None else forcing.began
        before = state.output if forcing.began is None else forcing.before
        size = forcing.bytes + sum(spill.bytes for spill in spills)
        forcing = replace(forcing, batches=0, bytes=size, began=began, before=before)
    return tuple(spills), forcing
