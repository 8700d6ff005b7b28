"""Tables of Apache Iceberg, by pyiceberg.

A step is one commit of the table: a new snapshot with the rows, and the number of the batch as a property of the table,
`eddyline.JOB.OUTLET.batch`. The property stays when snapshots expire. A commit is refused if another one came since the
table was read; then the table is read again, and the batch is looked for again. pyiceberg would repeat the commit
without looking, so its own repetition is turned off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import Table, TableProperties

from eddyline.errors import JobError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.secrets import concealed, revealed
from eddyline.runtime.sinks.sink import BatchOwner, ReadRows
from eddyline.runtime.sinks.table_sink import tries
from eddyline.runtime.sinks.table_types import TableTypes, check_partitions, column_of, fitted
from eddyline.runtime.sources.paths import why

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
        options.choice("mode", ("append",))
        create = options.flag("create", False)
        merge = options.choice("schema_evolution", ("refuse", "merge")) == "merge"
        properties = options.under("catalog")
        revealed(properties)  # SettingError if a variable is not set
        options.done()
        return IcebergOptions(table, catalog, create, merge, tuple(partition_by), properties)


class IcebergTable:
    """A table of Iceberg that results are added to."""

    def __init__(self, options: IcebergOptions, schema: pa.Schema) -> None:
        """SettingError for columns that Iceberg cannot hold."""
        self._options, self._schema = options, _TYPES.schema(schema)
        self._partition_by = [column_of(name, self._schema) for name in options.partition_by]
        self._catalog: Catalog | None = None

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
            self._fitting(table)

    def open(self) -> None:
        """Make the table if it is missing, and add missing columns if they are merged."""
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

    def newest(self, owner: BatchOwner) -> int | None:
        """The newest batch of this owner in the table."""
        table = self._found()
        return None if table is None else _newest(table, owner)

    def add(self, rows: ReadRows, owner: BatchOwner | None, batch: int) -> None:
        """Add rows and the number of their batch in one commit, unless the table has the batch."""
        for is_last in tries(_TRIES, _PAUSE):
            table = self._found()
            if table is None:
                raise JobError(f"cannot write to {self.name}: it was deleted while the job ran")
            if owner is not None and (newest := _newest(table, owner)) is not None and newest >= batch:
                return
            try:
                self._add(table, rows, owner, batch)
                return
            except CommitFailedException as error:
                if is_last:
                    raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None
            except SettingError as error:
                raise JobError(str(error)) from None
            except Exception as error:  # catalogs and file systems raise errors of their libraries
                raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def close(self) -> None:
        """End the connection to the catalog."""
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _add(self, table: Table, rows: ReadRows, owner: BatchOwner | None, batch: int) -> None:
        columns = self._fitting(table)
        added = pa.Table.from_batches([fitted(some, columns) for some in rows()], columns)
        properties = {**table.metadata.properties, **_NO_RETRIES}
        table.metadata = table.metadata.model_copy(update={"properties": properties})  # here, not in the catalog
        with table.transaction() as transaction:
            if owner is None:
                transaction.append(added)
            else:
                transaction.append(
                    added, snapshot_properties={"eddyline.owner": owner.name, "eddyline.batch": str(batch)}
                )
                transaction.set_properties({_key(owner): str(batch)})

    def _found(self) -> Table | None:
        """The table as it is now; None if there is none. SettingError if the catalog cannot be reached."""
        try:
            if self._catalog is None:
                self._catalog = load_catalog(self._options.catalog, **revealed(self._options.properties))
            return self._catalog.load_table(self._options.table)
        except NoSuchTableError:
            return None
        except Exception as error:  # catalogs raise errors of their libraries
            where = f"{self.name} in the catalog '{self._options.catalog}'"
            raise SettingError(f"cannot read {where}: {self._why(error)}", "option catalog") from None

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


def _key(owner: BatchOwner) -> str:
    return f"eddyline.{owner.job}.{owner.outlet}.batch"


def _newest(table: Table, owner: BatchOwner) -> int | None:
    found = table.properties.get(_key(owner))
    return None if found is None else int(found)
