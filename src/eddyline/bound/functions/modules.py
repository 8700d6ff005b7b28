"""The closed table, in the order of the documentation."""

from __future__ import annotations

from collections.abc import Mapping

from eddyline.bound.functions import (
    arithmetic,
    casts,
    characters,
    comparison,
    conditional,
    dates,
    epochs,
    fields,
    json,
    lists,
    logic,
    maths,
    padding,
    patterns,
    strings,
    strptime,
    zones,
)
from eddyline.bound.functions.table import Function

_MODULES = (
    arithmetic,
    comparison,
    logic,
    conditional,
    casts,
    maths,
    strings,
    padding,
    characters,
    patterns,
    dates,
    epochs,
    strptime,
    zones,
    fields,
    lists,
    json,
)

TABLE: Mapping[str, Function] = {f.name: f for module in _MODULES for f in module.FUNCTIONS}
