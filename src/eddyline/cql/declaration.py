"""A stream, table or sink as a CREATE statement declares it. Worker processes import this module without the
grammar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from eddyline.cql.places import Place


@dataclass(frozen=True)
class DeclaredMethod:
    """An access method of a table that is asked. Its options replace those of the table."""

    columns: tuple[str, ...] = ()
    """The columns of the index; none for a scan."""
    options: Mapping[str, str] = field(default_factory=dict, hash=False)


def place_of_method(method: int) -> str:
    """The key of an access method in `Declaration.places`."""
    return f"method {method}"


def place_of_option(method: int, key: str) -> str:
    """The key of an option of an access method in `Declaration.places`."""
    return f"method {method} option {key}"


@dataclass(frozen=True)
class Declaration:
    """One CREATE statement; `lateness` is in microseconds, option keys are lower case. `time` is the name of a column,
    or an expression over the columns (cql/event_time.py). An option that ends in `_env` has the name of an environment
    variable: the value of the variable is a secret, and is never part of a declaration."""

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
    """The places of `time`, `late`, `dead`, `format`, the options (`option path`), the access methods with their
    options, and the index columns (cql/access_methods.py) in the script."""
    partition_by: tuple[str, ...] = ()
    """The columns by whose values a sink divides its files into folders."""
    spelled: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    """How the script spells each option, by the option's lower-case key."""
    methods: tuple[DeclaredMethod, ...] = ()
    """The access methods of a table that is asked."""
