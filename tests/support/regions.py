"""Which regions of an arena something has: what the tests of state and engine share."""

from __future__ import annotations

from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.hash_index import HashIndex

OURS = ("eddyline.state.", "eddyline.engine.", "eddyline.migration.", "eddyline.routing.rows")


def taken(thing: object) -> list[int]:
    """Those of all columns and indexes in something; a region that two of them have is there twice."""
    found, left, seen = list[int](), [thing], set[int]()
    for one in left:
        if id(one) in seen or isinstance(one, Arena):
            continue
        seen.add(id(one))
        if isinstance(one, Column):
            found.append(one._region)
        if isinstance(one, HashIndex):
            found += one._regions
        left += one.values() if isinstance(one, dict) else one if isinstance(one, list | tuple) else ()
        left += vars(one).values() if type(one).__module__.startswith(OURS) and hasattr(one, "__dict__") else ()
    return found


def check_regions(thing: object, arena: Arena) -> None:
    """Every region of an arena is of exactly one column or index of this, or free."""
    assert sorted([*taken(thing), *arena.freed]) == list(range(arena.regions)), "lost, or given out twice"
