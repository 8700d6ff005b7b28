"""The live state of a slot, handed from one process to the next on the same host.

    slot = open_slot(query, settings, folder)
    slot.receive(...) ... slot.drain() ...       # and slot.commit(version) or slot.wind_back(), sooner or later
    save(slot)
    close(slot)

The columns of a slot are files of its arena. The next process maps them again and reads none of their contents, so the
time to attach does not depend on their size. The rest of the state is small: `save` writes it to the *header*, one
packed value, and writes Arrow data to files beside the header (state/shelf.py). Both have checksums. A slot may be
saved after a batch that is not committed yet. The next process then commits the batch or winds it back: the files hold
the current state and everything that is needed to wind it back.

Invariant: a header describes the files beside it correctly. `open_slot` removes it, under the arena's lock, before
anything in the arena can change, and `save` writes it, in one step, when nothing will change any more: after `save` a
slot may only be closed. So a process that is killed in between leaves no header, and the state is *lost*. The state is
also lost if the header was written before the last start of the host (pages may not have reached the disk), in another
format or for another query, or if it cannot be read. Then the files are removed, and the slot is new, at version 0. No
row is lost with the state: an arena is only a copy of what the log holds.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from functools import cache

from eddyline.bound.model import BoundQuery
from eddyline.codec import Snapshot, packed, schema, unpacked
from eddyline.engine import snapshot
from eddyline.engine.plan_source import MakePlanSource
from eddyline.engine.planner import plan_source
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.faults import reach
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.log.sealed import sealed, unsealed

LAYOUT = 10
"""The version of columns, tables and files in the arena. Raise it when their layout or the meaning of a number
changes."""

HEADER = "header"

_BOOT = "/proc/sys/kernel/random/boot_id"


class Header(Snapshot, frozen=True):
    """Everything that the next process must know about an arena."""

    format: str
    boot: str
    identity: str
    regions: int
    freed: tuple[int, ...]
    files: Mapping[str, int]
    """The size of each file of the arena."""
    slot: snapshot.SlotSnapshot


@cache
def arena_format() -> str:
    """The format of arenas: LAYOUT, and a digest of the types in the header."""
    return f"{LAYOUT}-{schema(Header)}"


def fingerprint(query: BoundQuery, identity: str = "") -> str:
    """A digest that says which slot of which query a state belongs to. The types and expressions of the bound query
    decide what is kept of each row; `identity` holds whatever else must be the same, such as the number of the slot and
    the number of slots. Settings are not part of it: they only decide how the state is used."""
    return hashlib.sha256(repr((query, identity)).encode()).hexdigest()


def open_slot(
    query: BoundQuery,
    settings: Settings,
    folder: str,
    clock: Callable[[], float] = time.perf_counter,
    *,
    partial: bool = False,
    identity: str = "",
    plans: MakePlanSource = plan_source,
    tuning: Tuning = DEFAULT,
    owners: tuple[int, ...] = (),
) -> Slot:
    """The slot whose state is in a folder, or an empty one at version 0. A folder that another process has open is
    refused (JobError). `owners` says which sources share a SteM (`Plan.owners`)."""
    arena = Arena(folder, fingerprint(query, identity), tuning.state)
    try:
        known = _take_header(arena)
        reach("arena: the header is taken")
        if known is not None:
            try:
                slot = snapshot.prepared(known.slot, query, settings, arena, clock, partial, plans, tuning, owners)
                if arena.regions == known.regions - len(known.freed):
                    snapshot.restore(slot, known.slot)
                    arena.regions, arena.freed = known.regions, list(known.freed)
                    return slot
            except Exception:  # any error: the arena is only a copy, and the log can replace it
                pass
        arena.clear()
        return Slot(query, settings, arena, clock, partial, plans=plans, tuning=tuning, owners=owners)
    except BaseException:
        arena.close()
        raise


def save(slot: Slot) -> bool:
    """Leave the state of a slot, whose batch is done and drained, to the next process; afterwards the slot may only be
    closed. Returns False if the state cannot be written: then it is lost."""
    arena = slot.arena
    try:
        state = snapshot.saved(slot)
        arena.shelf.sweep()
        header = Header(
            format=arena_format(),
            boot=_boot(),
            identity=arena.identity,
            regions=arena.regions,
            freed=tuple(arena.freed),
            files=arena.files,
            slot=state,
        )
        data, path = sealed(packed(header)), arena.path(HEADER)
        reach("arena: before the header is written")
        with open(path + ".new", "wb") as file:
            file.write(data)
        reach("arena: before the header is renamed")
        os.replace(path + ".new", path)
        reach("arena: the header is there")
    except OSError:
        return False
    return True


def close(slot: Slot) -> None:
    """Unlock the arena, so that another process may open it. A state that was not saved is lost."""
    slot.close()


def _take_header(arena: Arena) -> Header | None:
    """Read the header and remove it; None if the state is lost."""
    try:
        path = arena.path(HEADER)
        with open(path, "rb") as file:
            data = file.read()
        os.unlink(path)
        header = unpacked(unsealed(data), Header)
        said = header.format, header.boot, header.identity, header.files
        return header if said == (arena_format(), _boot(), arena.identity, arena.files) else None
    except (OSError, ValueError):
        return None


def _boot() -> str:
    with open(_BOOT, encoding="ascii") as file:
        return file.read().strip()
