"""Tables of Apache Iceberg, by pyiceberg.

A step is one commit of the table: a new snapshot with the rows, and the number of the batch as a property of the table,
`eddyline.JOB.OUTLET.batch`, with its history beside it. The property stays when snapshots expire. A commit is refused
if another one came since the table was read; then the table is read again, and the batch is looked for again. pyiceberg
would repeat the commit without looking, so its own repetition is turned off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from socket import gaierror

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table, TableProperties

from eddyline.errors import JobError, SettingError
from eddyline.os_errors import why
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import concealed, revealed
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery, ReadRows
from eddyline.runtime.sinks.table_sink import keep_others_out, tries
from eddyline.runtime.sinks.table_types import TableTypes, check_divisible, check_partitions, column_of, fitted
from eddyline.state.folder_lock import FolderLock

_TYPES = TableTypes("iceberg", times=True, smallest=pa.int32())
_TRIES, _PAUSE = 8, 0.1
"""How often a commit is tried while other writers commit too, and the seconds before the second try; the pause
doubles."""
_NO_RETRIES = {getattr(TableProperties, "COMMIT_NUM_RETRIES", "commit.retry.num-retries"): "0"}


@dataclass(frozen=True)
class IcebergOptions:
    """The options of an Iceberg sink."""

    table: str
    catalog: str
    create: bool = False
    shared: bool = False
    """Whether other runs may write to the table at the same time: `mode 'append'` is written."""
    merge: bool = False
    """Whether columns that the table lacks are added to it."""
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    """Properties of the catalog; for secrets the names of environment variables."""

    @staticmethod
    def read(options: Options, partition_by: Sequence[str] = ()) -> IcebergOptions:
        """Read the options from the declaration's OPTIONS and PARTITION BY; SettingError if one is wrong."""
        table = options.required("table", "lake.results")
        if "." not in table:
            raise SettingError(f"option table has a namespace, as in 'lake.{table}'", "option table")
        catalog = options.text("catalog", "default")
        shared = "mode" in options and options.choice("mode", ("append",)) == "append"
        create = options.flag("create", False)
        merge = options.choice("schema_evolution", ("refuse", "merge")) == "merge"
        properties = options.under("catalog")
        revealed(properties)  # SettingError if a variable is not set
        options.done()
        return IcebergOptions(table, catalog, create, shared, merge, tuple(partition_by), properties)


class IcebergTable:
    """A table of Iceberg that results are added to."""

    def __init__(self, options: IcebergOptions, schema: pa.Schema) -> None:
        """SettingError for columns that Iceberg cannot hold."""
        self._options, self._schema = options, _TYPES.schema(schema)
        self._partition_by = [column_of(name, self._schema) for name in options.partition_by]
        check_divisible("an Iceberg table", self._partition_by, self._schema, _may_be_nan)
        self._catalog: Catalog | None = None
        self._lock = FolderLock()

    @property
    def name(self) -> str:
        """The table's name."""
        return f"the Iceberg table {self._options.table}"

    def check(self) -> None:
        """SettingError if the catalog cannot be reached, or the table is missing and must not be made, or has other
        columns."""
        table = self._found()
        if table is None:
            if not self._options.create:
                raise SettingError(f"{self.name} does not exist; create 'true' makes it", "option table")
        elif self._schema.names:
            partitions = [str(table.schema().find_column_name(part.source_id)) for part in table.spec().fields]
            check_partitions(self.name, self._partition_by, partitions)
            check_divisible(self.name, partitions, self._schema, _may_be_nan)
            self._fitting(table)

    def open(self) -> None:
        """Make the table if it is missing, and add missing columns if they are merged; keep other runs out where the
        table is a local folder."""
        table = self._found()
        try:
            if table is None:
                assert self._catalog is not None
                namespace = self._options.table.rpartition(".")[0]
                self._catalog.create_namespace_if_not_exists(namespace)
                table = self._catalog.create_table_if_not_exists(self._options.table, self._schema)
                if self._partition_by and not table.spec().fields:
                    with table.update_spec() as spec:
                        for column in self._partition_by:
                            spec.add_identity(column)
            elif self._options.merge and set(self._schema.names) - set(table.schema().as_arrow().names):
                with table.update_schema() as update:
                    update.union_by_name(self._schema)
        except Exception as error:  # catalogs raise errors of their libraries
            raise JobError(f"cannot make {self.name}: {self._why(error)}") from None
        if not self._options.shared:
            keep_others_out(self._lock, self.name, table.location())

    def newest(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the table."""
        table = self._found()
        return None if table is None else _newest(table, owner)

    def add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        """Add rows and the mark of their batch in one commit, unless the table has the batch."""
        for is_last in tries(_TRIES, _PAUSE):
            table = self._found()
            if table is None:
                raise JobError(f"cannot write to {self.name}: it was deleted while the job ran")
            if delivery is not None and not delivery.is_missing(self.name, _newest(table, delivery.owner)):
                return
            try:
                self._add(table, rows, delivery)
                return
            except CommitFailedException as error:
                if is_last:
                    raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None
            except SettingError as error:
                raise JobError(str(error)) from None
            except Exception as error:  # catalogs and file systems raise errors of their libraries
                raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def close(self) -> None:
        """End the connection to the catalog, and let other runs in."""
        self._lock.let_go()
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _add(self, table: Table, rows: ReadRows, delivery: Delivery | None) -> None:
        columns = self._fitting(table)
        added = pa.Table.from_batches([fitted(some, columns) for some in rows()], columns)
        properties = {**table.metadata.properties, **_NO_RETRIES}
        table.metadata = table.metadata.model_copy(update={"properties": properties})  # here, not in the catalog
        with table.transaction() as transaction:
            if delivery is None:
                transaction.append(added)
            else:
                owner, batch = delivery.owner, str(delivery.mark.batch)
                transaction.append(added, snapshot_properties={"eddyline.owner": owner.name, "eddyline.batch": batch})
                known = {"batch": batch, "history": str(delivery.mark.history)}
                transaction.set_properties({_key(owner, what): value for what, value in known.items()})

    def _found(self) -> Table | None:
        """The table as it is now; None if there is none. SettingError if the catalog cannot be read; JobError if its
        server cannot be reached."""
        try:
            if self._catalog is None:
                self._catalog = load_catalog(self._options.catalog, **revealed(self._options.properties))
            return self._catalog.load_table(self._options.table)
        except NoSuchTableError:
            return None
        except Exception as error:  # catalogs raise errors of their libraries
            where = f"{self.name} in the catalog '{self._options.catalog}'"
            message = f"cannot read {where}: {self._why(error)}"
            raise (JobError(message) if _is_away(error) else SettingError(message, "option catalog")) from None

    def _fitting(self, table: Table) -> pa.Schema:
        """The columns of results with the types of the table; SettingError if the table has other columns."""
        there = table.schema().as_arrow()
        return _TYPES.matched(self.name, self._schema, there, self._options.merge)

    def _why(self, error: Exception) -> str:
        """The error in one line, without secrets."""
        return concealed(why(error), self._options.properties)


def open_table(options: Options, partition_by: Sequence[str], schema: pa.Schema) -> IcebergTable:
    """The table that a sink names; SettingError if an option is wrong."""
    return IcebergTable(IcebergOptions.read(options, partition_by), schema)


_may_be_nan = pa.types.is_floating
"""pyiceberg does not write the partition of NaN."""


def _key(owner: BatchOwner, what: str) -> str:
    return f"eddyline.{owner.job}.{owner.outlet}.{what}"


def _newest(table: Table, owner: BatchOwner) -> BatchMark | None:
    found = table.properties.get(_key(owner, "batch"))
    return None if found is None else BatchMark(int(found), int(table.properties.get(_key(owner, "history"), 0)))


def _is_away(error: BaseException | None) -> bool:
    """Whether a server could not be reached: an error of the connection is behind the error."""
    while error is not None:
        if isinstance(error, ConnectionError | TimeoutError | gaierror):
            return True
        error = error.__cause__ or error.__context__
    return False
