"""Fault points: places where a test may make something go wrong.

`reach("name")` does nothing unless a test has injected a fault. Tests find the names by reading the code (see
lab/fuzz/fault_points.py), so they notice a point that no test visits.
"""

from __future__ import annotations

from collections.abc import Callable

_wanted: Callable[[str], None] | None = None


def reach(name: str) -> None:
    """A fault point: a test may raise an error here."""
    if _wanted is not None:
        _wanted(name)


def inject(wanted: Callable[[str], None] | None) -> None:
    """From now on `wanted(name)` is called at every point, and may raise; None ends it."""
    global _wanted
    _wanted = wanted
