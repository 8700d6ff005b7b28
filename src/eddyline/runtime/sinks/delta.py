"""Tables of Delta Lake, by delta-rs (no JVM).

A step is one commit of the table's log. With the rows it holds the transaction (owner, batch), which Delta keeps for
writers like us: the newest batch of each owner is part of the table's state; so is its history. Of two
commits of one owner that run at once, Delta refuses the second. Appends of other writers do not conflict with ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import deltalake
import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError

from eddyline.errors import JobError, SettingError
from eddyline.os_errors import why
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import concealed, revealed
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery, ReadRows
from eddyline.runtime.sinks.table_sink import keep_others_out, tries
from eddyline.runtime.sinks.table_types import TableTypes, check_divisible, check_partitions, column_of, fitted
from eddyline.state.folder_lock import FolderLock

_TYPES = TableTypes("delta")
_TRIES, _PAUSE = 5, 0.2
"""How often a commit is tried that conflicts with one of another writer, and the seconds before the second try; the
pause doubles. Appends do not conflict, but a changed schema or a compaction may."""


@dataclass(frozen=True)
class DeltaOptions:
    """The options of a Delta sink."""

    path: str
    create: bool = True
    shared: bool = False
    """Whether other runs may write to the table at the same time: `mode 'append'` is written."""
    merge: bool = False
    """Whether columns that the table lacks are added to it."""
    partition_by: tuple[str, ...] = ()
    storage: Mapping[str, str] = field(default_factory=dict)
    """Options of the object store; for secrets the names of environment variables."""

    @staticmethod
    def read(options: Options, partition_by: Sequence[str] = ()) -> DeltaOptions:
        """Read the options from the declaration's OPTIONS and PARTITION BY; SettingError if one is wrong."""
        path = options.required("path", "lake/out")
        shared = "mode" in options and options.choice("mode", ("append",)) == "append"
        create = options.flag("create", True)
        merge = options.choice("schema_evolution", ("refuse", "merge")) == "merge"
        storage = options.under("storage")
        options.done()
        return DeltaOptions(path, create, shared, merge, tuple(partition_by), storage)


class DeltaLakeTable:
    """A table of Delta Lake that results are added to."""

    def __init__(self, options: DeltaOptions, schema: pa.Schema) -> None:
        """SettingError for columns that Delta cannot hold, or if a variable with a secret is not set."""
        self._options, self._schema = options, _TYPES.schema(schema)
        self._storage = revealed(options.storage) or None
        self._partition_by = [column_of(name, self._schema) for name in options.partition_by]
        if self._schema.names and len(self._partition_by) == len(self._schema.names):
            raise SettingError("PARTITION BY names all columns; leave one for the files")
        check_divisible("a Delta table", self._partition_by, self._schema, _misread)
        self._table: deltalake.DeltaTable | None = None
        self._lock = FolderLock()

    @property
    def name(self) -> str:
        """The table's path."""
        return f"the Delta table {self._options.path}"

    def check(self) -> None:
        """SettingError if the table is missing and must not be made, or has other columns."""
        table = self._found()
        if table is None:
            if not self._options.create:
                raise SettingError(f"{self.name} does not exist; create 'true' makes it")
            return
        if not self._schema.names:
            return  # only Spark will know the columns
        partitions = table.metadata().partition_columns
        check_partitions(self.name, self._partition_by, partitions)
        check_divisible(self.name, partitions, self._schema, _misread)
        self._fitting(table)

    def open(self) -> None:
        """Make the table if it is missing, and keep other runs out where it is a folder."""
        if self._found() is None:
            try:
                self._table = deltalake.DeltaTable.create(
                    self._options.path,
                    deltalake.Schema.from_arrow(self._schema),
                    mode="ignore",
                    partition_by=self._partition_by,
                    storage_options=self._storage,
                )
            except Exception as error:  # delta-rs raises plain exceptions too
                raise JobError(f"cannot make {self.name}: {self._why(error)}") from None
        if not self._options.shared:
            keep_others_out(self._lock, self.name, self._options.path)

    def newest(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the table."""
        table = self._found()
        try:
            batch = None if table is None else table.transaction_version(owner.name)
            if table is None or batch is None:
                return None
            history = table.transaction_version(f"{owner.name}-history")
            return BatchMark(batch, history or 0)
        except DeltaError as error:
            raise JobError(f"cannot read {self.name}: {self._why(error)}") from None

    def add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        """Add rows and the mark of their batch in one commit, unless the table has the batch."""
        for is_last in tries(_TRIES, _PAUSE):
            if delivery is not None and not delivery.is_missing(self.name, self.newest(delivery.owner)):
                return
            try:
                self._add(rows, delivery)
                return
            except CommitFailedError as error:
                self._table = None
                if is_last:
                    raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def close(self) -> None:
        """Let other runs in; there is no connection."""
        self._table = None
        self._lock.let_go()

    def _add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        table = self._table if delivery is not None else self._found()
        if table is None:
            raise JobError(f"cannot write to {self.name}: it was deleted while the job ran")
        try:
            columns = self._fitting(table)
            reader = pa.RecordBatchReader.from_batches(columns, (fitted(some, columns) for some in rows()))
            deltalake.write_deltalake(
                table,
                reader,
                mode="append",
                schema_mode="merge" if self._options.merge else None,
                commit_properties=_properties(delivery),
            )
        except CommitFailedError:
            raise
        except SettingError as error:
            raise JobError(str(error)) from None
        except (DeltaError, pa.ArrowException, OSError) as error:
            raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def _found(self) -> deltalake.DeltaTable | None:
        """The table as it is now; None if there is none. SettingError if it cannot be reached."""
        try:
            if self._table is not None:
                self._table.update_incremental()
            elif deltalake.DeltaTable.is_deltatable(self._options.path, self._storage):
                self._table = deltalake.DeltaTable(self._options.path, storage_options=self._storage)
        except Exception as error:  # delta-rs raises plain exceptions too
            raise SettingError(f"cannot read {self.name}: {self._why(error)}", "option path") from None
        return self._table

    def _fitting(self, table: deltalake.DeltaTable) -> pa.Schema:
        """The columns of results with the types of the table; SettingError if the table has other columns."""
        return _TYPES.matched(self.name, self._schema, pa.schema(table.schema().to_arrow()), self._options.merge)

    def _why(self, error: Exception) -> str:
        """The error in one line, without secrets."""
        return concealed(why(error), self._options.storage)


def open_table(options: Options, partition_by: Sequence[str], schema: pa.Schema) -> DeltaLakeTable:
    """The table that a sink names; SettingError if an option is wrong."""
    return DeltaLakeTable(DeltaOptions.read(options, partition_by), schema)


def _misread(type_: pa.DataType) -> bool:
    """Whether delta-rs misreads some partitions, or cannot write them: bytes, decimals below zero, tiny floats."""
    t = pa.types
    return bool(t.is_binary(type_) or t.is_floating(type_) or (t.is_decimal(type_) and type_.scale))


def _properties(delivery: Delivery | None) -> deltalake.CommitProperties | None:
    if delivery is None:
        return None
    name, batch = delivery.owner.name, delivery.mark.batch
    transactions = [deltalake.Transaction(name, batch)]
    if delivery.mark.history:
        transactions.append(deltalake.Transaction(f"{name}-history", delivery.mark.history))
    return deltalake.CommitProperties(app_transactions=transactions, custom_metadata={"eddyline.batch": str(batch)})
