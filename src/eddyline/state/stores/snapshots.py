"""Snapshots of stores: a type for each kind of store, so that a store is restored only from one of its own kind."""

from __future__ import annotations

from eddyline.codec import Snapshot
from eddyline.state.column import ColumnSnapshot


class ValiditySnapshot(Snapshot, frozen=True):
    """Which rows are not NULL."""

    rows: int
    base: int
    noted: bool
    column: ColumnSnapshot


class NullSnapshot(Snapshot, frozen=True, tag=0):
    """The snapshot of a store that has only NULL."""


class FixedSnapshot(Snapshot, frozen=True, tag=1):
    """The snapshot of a store of fixed width; without a column if another column owns the values."""

    column: ColumnSnapshot | None
    validity: ValiditySnapshot


class BytesSnapshot(Snapshot, frozen=True, tag=2):
    """The snapshot of a store of strings or binary values."""

    starts: ColumnSnapshot
    heap: ColumnSnapshot
    validity: ValiditySnapshot


class ListSnapshot(Snapshot, frozen=True, tag=3):
    """The snapshot of a store of lists or maps."""

    starts: ColumnSnapshot
    child: StoreSnapshot
    validity: ValiditySnapshot


class StructSnapshot(Snapshot, frozen=True, tag=4):
    """The snapshot of a store of structs."""

    fields: tuple[StoreSnapshot, ...]
    validity: ValiditySnapshot


class DictionarySnapshot(Snapshot, frozen=True, tag=5):
    """The snapshot of a store of dictionary-encoded values."""

    codes: FixedSnapshot
    values: StoreSnapshot
    rows: int
    kept: int
    stretches: tuple[tuple[int, int], ...]


StoreSnapshot = NullSnapshot | FixedSnapshot | BytesSnapshot | ListSnapshot | StructSnapshot | DictionarySnapshot
