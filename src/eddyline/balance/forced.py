"""Active-disk (004, section 6): slots whose state is not productive are forced to spill, in favour of others.

With lazy-disk each slot spills by itself when its memory is full, and groups move while slots differ in memory. Then a
slot may spill groups that are more productive than what another slot keeps. With active-disk the manager forces the
less productive slot to spill. After that it has the least memory in use, and productive groups move to it.

A slot is forced if memory is balanced, if the query needs more memory than there is (M_query > M_cluster), if a slot
whose memory is running out has more than lambda times its productivity (results per byte), and if this has been so for
some batches. Memory of a slot is running out if it would give groups away (T_max), and is full some batches later. All
that was forced out and is still on disk is at most M_query - M_cluster.

active-disk compares all state of the slots, as the paper does. `auto` compares the state that would leave next: the
least productive groups of both slots. A slot is forced only if that saves results, so it is lazy-disk where slots have
the same mixture of groups, and active-disk where they differ.
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


def spill_mode(spill: str) -> SpillMode:
    """Who decides that groups leave memory, by the value of the setting `spill`.

    >>> spill_mode("active-disk"), spill_mode("off")
    ('active-disk', 'lazy-disk')
    """
    return "auto" if spill == "auto" else "active-disk" if spill == "active-disk" else "lazy-disk"


def productivity(loads: Loads, places: NDArray[np.int32], size: float = np.inf) -> Floats:
    """By slot the results per byte of its state in memory, or of its least productive groups: as many as have `size`
    bytes."""
    bytes, results, slots = loads.group_bytes, loads.group_results, loads.memory.size
    if size < np.inf:
        order = np.lexsort((results / np.maximum(bytes, 1.0), places))
        places, bytes, results = places[order], bytes[order], results[order]
        first = np.concatenate([[0.0], np.cumsum(np.bincount(places, bytes, slots))])[places]
        some = np.cumsum(bytes) - bytes - first < size
        bytes, results = np.where(some, bytes, 0.0), np.where(some, results, 0.0)
    found: Floats = np.bincount(places, results, slots) / np.maximum(np.bincount(places, bytes, slots), 1.0)
    return found


def missing_memory(loads: Loads, limit: int, tuning: BalanceTuning) -> float:
    """M_query - M_cluster: the memory that the query needs in the next batches, less what slots may use before they
    spill."""
    needed = loads.memory + loads.on_disk + tuning.ahead * np.maximum(loads.growth, 0.0)
    return float(needed.sum() - tuning.memory_min * limit * loads.known.sum())


def forced(
    state: ManagerState,
    loads: Loads,
    places: NDArray[np.int32],
    free: NDArray[np.bool_],
    limit: int,
    mode: SpillMode,
    tuning: BalanceTuning,
) -> tuple[tuple[ForcedSpill, ...], Forcing]:
    """The slots that are forced to spill now. `free` are slots in no move; the caller has found memory balanced."""
    forcing = replace(state.forcing, bytes=int(min(state.forcing.bytes, loads.on_disk.sum())))
    later = loads.memory + tuning.ahead * np.maximum(loads.growth, 0.0)
    full = loads.known & (loads.memory >= tuning.memory_max * limit) & (later >= tuning.memory_min * limit)
    missing = missing_memory(loads, limit, tuning)
    if mode == "lazy-disk" or not full.any() or missing <= forcing.bytes:
        return (), replace(forcing, batches=0)
    rate = productivity(loads, places, tuning.push * limit if mode == "auto" else np.inf)
    best, held = int(np.where(full, rate, -np.inf).argmax()), np.bincount(places, loads.group_bytes, rate.size)
    poor = np.flatnonzero(free & loads.known & (rate * tuning.times < rate[best]) & (held > 0))
    batches = forcing.batches + 1 if poor.size else 0
    if batches < tuning.patience:
        return (), replace(forcing, batches=batches)
    spills, room = list[ForcedSpill](), missing - forcing.bytes
    for slot in poor[np.argsort(rate[poor], kind="stable")][: max(1, int(tuning.pairs_share * rate.size))].tolist():
        size = int(min(tuning.push * limit, room, held[slot]))
        if size <= 0:
            break
        room -= size
        why = (
            f"slot {slot} makes {rate[slot]:.3g} results per byte and slot {best}, whose memory is running out,"
            f" {rate[best]:.3g}, more than {tuning.times:g} times as many; the query needs {missing:.3g} bytes more"
            f" than there are, and {forcing.bytes:.3g} were forced out already"
        )
        spills.append(ForcedSpill(slot, size, why))
    size = forcing.bytes + sum(spill.bytes for spill in spills)
    return tuple(spills), Forcing(size, batches=0)
