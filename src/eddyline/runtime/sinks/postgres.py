"""Tables of PostgreSQL, by psycopg 3.

A step is one transaction: it locks the row of its owner in the table `eddyline_batches`, looks whether the batch is
there, copies the rows (COPY), and writes the number of the batch. The lock lets a second driver of the same job wait;
it then finds the batch. `eddyline_batches` is in the schema of the table of results, so both are in one database.

With `mode 'upsert'` the rows are first copied to a temporary table. Of the rows with one key the last one counts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from eddyline.cql.names import did_you_mean
from eddyline.errors import JobError, SettingError
from eddyline.faults import reach
from eddyline.runtime.options import Options
from eddyline.runtime.postgres_place import conninfo_of
from eddyline.runtime.sinks.postgres_text import TYPES, copy_text, database_type
from eddyline.runtime.sinks.sink import BatchOwner, ReadRows
from eddyline.runtime.sinks.table_sink import tries

_TRIES, _PAUSE = 4, 0.3
"""How often a batch is tried after a connection is lost or two transactions lock each other, and the seconds before the
second try; the pause doubles."""
_SESSION = "SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO'; SET IntervalStyle TO 'postgres'"
_AGAIN = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors of the connection, deadlocks and transactions that cannot be put in an order."""
_FIND = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
_NUMBERS, _GIVEN = "eddyline_batches", "eddyline_rows"
_PLACE = "eddyline_place"
"""The column of the temporary table that has the place of a row among the results."""


@dataclass(frozen=True)
class PostgresOptions:
    """The options of a PostgreSQL sink."""

    conninfo: str = field(repr=False)
    table: str
    create: bool = False
    key: tuple[str, ...] = ()
    """The columns by which rows replace others; none: all rows are added."""

    @staticmethod
    def read(options: Options) -> PostgresOptions:
        """Read the options; SettingError if one is wrong."""
        conninfo = conninfo_of(options)
        table = options.required("table", "results")
        create, upsert = options.flag("create", False), options.choice("mode", ("append", "upsert")) == "upsert"
        key = tuple(name.strip() for name in options.text("key").split(",") if name.strip())
        if upsert != bool(key):
            raise SettingError("mode 'upsert' needs an option key, as in key 'id', and key needs mode 'upsert'")
        options.done()
        return PostgresOptions(conninfo, table, create, key)


class PostgresTable:
    """A table of PostgreSQL that results are written to."""

    def __init__(self, options: PostgresOptions, schema: pa.Schema) -> None:
        """SettingError for columns that PostgreSQL cannot hold, and for a key that is no column."""
        self._options, self._schema = options, TYPES.schema(schema)
        self._key = [_spelled(name, self._schema.names) for name in options.key]
        self._secret = str(conninfo_to_dict(options.conninfo).get("password") or "")
        self._target, self._numbers = sql.Identifier(options.table), sql.Identifier(_NUMBERS)
        """With their schema as soon as the table is found."""
        self._connection: psycopg.Connection[Any] | None = None

    @property
    def name(self) -> str:
        """The table's name."""
        return f"the PostgreSQL table {self._options.table}"

    def check(self) -> None:
        """SettingError if the database cannot be reached, or the table is missing, has other columns or may not be
        written to."""
        try:
            with self._transaction(undo=True) as cursor:
                target = self._found(cursor)
                if target is None and not self._options.create:
                    raise SettingError(f"{self.name} does not exist; create 'true' makes it", "option table")
                if not self._schema.names:
                    return  # only Spark will know the columns
                if target is None:
                    self._create(cursor)
                else:
                    self._check_columns(cursor)
                self._make_numbers(cursor)
                self._make_given(cursor, mine=True)
                cursor.execute(self._upsert() if self._key else self._insert())
        except psycopg.Error as error:
            raise SettingError(f"cannot write to {self.name}: {self._why(error)}") from None

    def open(self) -> None:
        """Make the table if it is missing, and the table of batch numbers."""
        try:
            with self._transaction() as cursor:
                if self._found(cursor) is None:
                    self._create(cursor)
                self._make_numbers(cursor)
        except psycopg.Error as error:
            raise JobError(f"cannot make {self.name}: {self._why(error)}") from None

    def newest(self, owner: BatchOwner) -> int | None:
        """The newest batch of this owner in the table."""
        try:
            with self._transaction() as cursor:
                if self._found(cursor) is None or not _exists(cursor, self._numbers.as_string()):
                    return None
                found = cursor.execute(self._about("SELECT batch FROM {} WHERE {}"), self._of(owner)).fetchone()
                return None if found is None or found[0] < 0 else int(found[0])
        except psycopg.Error as error:
            raise JobError(f"cannot read {self.name}: {self._why(error)}") from None

    def add(self, rows: ReadRows, owner: BatchOwner | None, batch: int) -> None:
        """Write rows and the number of their batch in one transaction, unless the batch is there."""
        for is_last in tries(1 if owner is None else _TRIES, _PAUSE):
            try:
                with self._transaction() as cursor:
                    if owner is None or self._is_new(cursor, owner, batch):
                        self._copy(cursor, rows)
                        reach("table: rows are copied")
                return
            except _AGAIN as error:  # perhaps the transaction is there: the next try finds its number
                self.close()
                if is_last:
                    raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None
            except psycopg.Error as error:
                raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _is_new(self, cursor: psycopg.Cursor[Any], owner: BatchOwner, batch: int) -> bool:
        """Lock the number of the owner; returns whether the batch is not there yet, and then writes its number."""
        mine = self._of(owner)
        cursor.execute(self._about("INSERT INTO {} VALUES (%(job)s, %(outlet)s, -1) ON CONFLICT DO NOTHING"), mine)
        found = cursor.execute(self._about("SELECT batch FROM {} WHERE {} FOR UPDATE"), mine).fetchone()
        if found is None or found[0] >= batch:
            return False
        cursor.execute(self._about("UPDATE {} SET batch = %(batch)s, at = now() WHERE {}"), {**mine, "batch": batch})
        return True

    def _copy(self, cursor: psycopg.Cursor[Any], rows: ReadRows) -> None:
        if self._key:
            self._make_given(cursor)
        into = sql.Identifier(_GIVEN) if self._key else self._target
        command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(into, self._columns)
        with cursor.copy(command) as copy:
            for batch in rows():
                copy.write(copy_text(batch, self._schema))
        if self._key:
            cursor.execute(self._upsert())

    @contextlib.contextmanager
    def _transaction(self, undo: bool = False) -> Iterator[psycopg.Cursor[Any]]:
        """A transaction, which is undone if it fails, or in any case."""
        if self._connection is None:
            self._connection = psycopg.connect(self._options.conninfo)
            self._connection.execute(_SESSION)
            self._connection.commit()
        with self._connection.transaction(force_rollback=undo), self._connection.cursor() as cursor:
            yield cursor

    # Tables and statements

    def _found(self, cursor: psycopg.Cursor[Any]) -> tuple[str, str] | None:
        """The schema and the name of the table; None if it does not exist."""
        found = cursor.execute(_FIND, [self._options.table]).fetchone()
        if found is not None:
            self._target, self._numbers = sql.Identifier(*found), sql.Identifier(found[0], _NUMBERS)
        return found

    @property
    def _columns(self) -> sql.Composed:
        return _names(self._schema.names)

    def _create(self, cursor: psycopg.Cursor[Any]) -> None:
        types = [sql.SQL("{} {}").format(sql.Identifier(f.name), sql.SQL(database_type(f.type))) for f in self._schema]
        key = [sql.SQL("PRIMARY KEY ({})").format(_names(self._key))] if self._key else []
        parts = cursor.execute("SELECT parse_ident(%s)", [self._options.table]).fetchone()
        name = sql.Identifier(*(parts or ([],))[0])
        cursor.execute(sql.SQL("CREATE TABLE IF NOT EXISTS {} ({})").format(name, sql.SQL(", ").join([*types, *key])))
        self._found(cursor)

    def _check_columns(self, cursor: psycopg.Cursor[Any]) -> None:
        there = [row[0] for row in cursor.execute(_COLUMNS, [self._options.table]).fetchall()]
        for name in self._schema.names:
            if name not in there:
                raise SettingError(f"{self.name} has no column {name}{did_you_mean(name, there)}")

    def _make_numbers(self, cursor: psycopg.Cursor[Any]) -> None:
        if not _exists(cursor, self._numbers.as_string()):
            cursor.execute(
                self._about(
                    "CREATE TABLE IF NOT EXISTS {} (job text, outlet text, batch bigint NOT NULL,"
                    " at timestamptz DEFAULT now(), PRIMARY KEY (job, outlet))"
                )
            )

    def _make_given(self, cursor: psycopg.Cursor[Any], mine: bool = False) -> None:
        """The temporary table, with the types of the table of results; or with those of the results, where they
        matter: COPY reads a text as a value of any type."""
        given = sql.Identifier(_GIVEN)
        statement = sql.SQL("CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT {} FROM {} WITH NO DATA")
        cursor.execute(statement.format(given, self._columns, self._target))
        cursor.execute(sql.SQL("ALTER TABLE {} ADD COLUMN {} bigserial").format(given, sql.Identifier(_PLACE)))
        for column in self._schema if mine else ():
            if column.type != pa.string():
                change = sql.SQL("ALTER TABLE {table} DROP COLUMN {name}, ADD COLUMN {name} {type}")
                type_ = sql.SQL(database_type(column.type))
                cursor.execute(change.format(table=given, name=sql.Identifier(column.name), type=type_))

    def _insert(self) -> sql.Composed:
        statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
        return statement.format(self._target, self._columns, self._columns, sql.Identifier(_GIVEN))

    def _upsert(self) -> sql.Composed:
        """The last row of each key, in place of the row that the table has."""
        others = [name for name in self._schema.names if name not in self._key]
        new = [sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others]
        update = sql.SQL("UPDATE SET {}").format(sql.SQL(", ").join(new)) if new else sql.SQL("NOTHING")
        statement = sql.SQL(
            "INSERT INTO {target} ({columns}) SELECT DISTINCT ON ({key}) {columns} FROM {given}"
            " ORDER BY {key}, {place} DESC ON CONFLICT ({key}) DO {update}"
        )
        return statement.format(
            target=self._target,
            columns=self._columns,
            key=_names(self._key),
            given=sql.Identifier(_GIVEN),
            place=sql.Identifier(_PLACE),
            update=update,
        )

    def _about(self, statement: str) -> sql.Composed:
        """A statement about the numbers of batches; the second place is the condition for those of one owner."""
        mine = sql.SQL("job = %(job)s AND outlet = %(outlet)s")
        return sql.SQL(statement).format(self._numbers, mine)

    def _of(self, owner: BatchOwner) -> dict[str, str]:
        return {"job": owner.job, "outlet": owner.outlet}

    def _why(self, error: psycopg.Error) -> str:
        """The error in one line, without the password."""
        text = error.diag.message_primary or " ".join(str(error).split())
        text = f"{text} ({error.diag.context.splitlines()[0]})" if error.diag.context else text
        return text.replace(self._secret, "***") if self._secret else text


def open_table(options: Options, partition_by: Sequence[str], schema: pa.Schema) -> PostgresTable:
    """The table that a sink names; SettingError if an option is wrong."""
    if partition_by:
        raise SettingError("postgres divides tables itself; leave PARTITION BY out")
    return PostgresTable(PostgresOptions.read(options), schema)


def _exists(cursor: psycopg.Cursor[Any], table: str) -> bool:
    found = cursor.execute("SELECT to_regclass(%s) IS NOT NULL", [table]).fetchone()
    return bool(found and found[0])


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _spelled(name: str, columns: Sequence[str]) -> str:
    for column in columns:
        if column.lower() == name.lower():
            return column
    if not columns:
        return name  # only Spark will know the columns
    raise SettingError(f"option key: there is no column {name} in the results{did_you_mean(name, columns)}")
