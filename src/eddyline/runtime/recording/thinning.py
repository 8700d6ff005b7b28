"""Two neighbouring samples as one: the standing of the second, and the counts of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The sample for the time of both.

    >>> one = {"t": 1.0, "batches": 2, "batch_seconds": 0.1, "steps": [{"at": "a", "step": "b", "tuples": 5}]}
    >>> two = {"t": 2.0, "batches": 3, "batch_seconds": 0.3, "steps": [{"at": "a", "step": "b", "tuples": 7}]}
    >>> merged(one, two)["steps"]
    [{'at': 'a', 'step': 'b', 'tuples': 12}]
    """
    found = {**second}
    if second.get("tree") == first.get("tree"):
        found["steps"] = _added(first.get("steps", ()), second.get("steps", ()), ("at", "step"), _STEP)
        found["routes"] = _added(first.get("routes", ()), second.get("routes", ()), ("source",), _ROUTE)
        found["packets"] = _added(first.get("packets", ()), second.get("packets", ()), ("at",), _PACKETS)
    if "groups" not in second and "groups" in first:
        found["groups"] = first["groups"]
    return found


_STEP, _ROUTE, _PACKETS = ("tuples", "produced", "us"), ("rows",), ("packets",)


def _added(
    first: Iterable[Mapping[str, Any]],
    second: Iterable[Mapping[str, Any]],
    key: tuple[str, ...],
    counts: tuple[str, ...],
) -> list[dict[str, Any]]:
    """The entries of the second list, with the counts of the same entries in the first added."""
    known = {tuple(entry.get(name) for name in key): entry for entry in first}
    found = []
    for entry in second:
        before = known.pop(tuple(entry.get(name) for name in key), {})
        more = {name: _sum(before.get(name), entry.get(name)) for name in counts if name in entry}
        found.append({**entry, **more})
    return [*found, *({**entry, "chosen": False} if "chosen" in entry else dict(entry) for entry in known.values())]


def _sum(one: float | None, other: float | None) -> float | None:
    return (one or 0) + (other or 0) if one is not None or other is not None else None
