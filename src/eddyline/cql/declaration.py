"""A stream, table or sink as a CREATE statement declares it. Processes that only read need not know the grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.cql.places import Place


@dataclass(frozen=True)
class Declaration:
    """One CREATE statement; `lateness` is in microseconds, option keys are lower case. `time` is the name of a column,
    or an expression over the columns (cql/event_time.py)."""

    kind: str
    name: str
    columns: tuple[tuple[str, pa.DataType], ...] | None
    format: str
    options: Mapping[str, str] = field(hash=False)
    time: str | None
    lateness: int
    late_into: str | None
    dead_into: str | None
    place: Place
    places: Mapping[str, Place] = field(default_factory=dict, hash=False, compare=False)
    """Where `time`, `late`, `dead`, `format` and options (`option path`) are named."""
    partition_by: tuple[str, ...] = ()
    """The columns whose values are folders of a sink."""
    spelled: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    """By the keys of options, how the script spells them."""
