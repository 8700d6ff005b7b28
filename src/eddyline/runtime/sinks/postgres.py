"""Tables of PostgreSQL, by psycopg 3.

A step is one transaction: it locks the row of its owner in the table `eddyline_batches`, looks whether the batch is
there, copies the rows (COPY), and writes the mark of the batch. The lock lets a second driver of the same job wait; it
then finds the batch. `eddyline_batches` is in the schema of the table of results, so both are in one database.

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
from eddyline.runtime.sinks.postgres_session import ServerHangs, connected, why
from eddyline.runtime.sinks.postgres_text import TYPES, copy_text, database_type
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery, ReadRows, taken
from eddyline.runtime.sinks.table_sink import tries

_TRIES, _PAUSE = 4, 0.3
"""How often a batch is tried after a connection is lost or two transactions lock each other, and the seconds before the
second try; the pause doubles."""
_AGAIN = (psycopg.OperationalError, psycopg.InterfaceError)
"""Errors of the connection, deadlocks and transactions that cannot be put in an order."""
_WAITED = (ServerHangs, psycopg.errors.LockNotAvailable)
"""Those of them for which the job has waited long enough."""
_FIND = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = to_regclass(%s)
"""
_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
_NEWEST = "SELECT batch, to_jsonb(known) ->> 'history' FROM {} AS known WHERE {}"
"""The mark of an owner; tables of earlier versions have no column `history`."""
_CLAIM = "hashtextextended('eddyline ' || %s::regclass::oid, 0)"
"""The advisory lock of the run that writes to a table."""
_CLAIMANT = f"""
SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1
AND (classid::bigint << 32) | objid::bigint = {_CLAIM}
"""
_NUMBERS, _GIVEN = "eddyline_batches", "eddyline_rows"
_PLACE = "eddyline_place"
"""The column of the temporary table that has the place of a row among the results."""


@dataclass(frozen=True)
class PostgresOptions:
    """The options of a PostgreSQL sink."""

    conninfo: str = field(repr=False)
    table: str
    create: bool = False
    shared: bool = False
    """Whether other runs may write to the table at the same time: `mode 'append'` is written."""
    key: tuple[str, ...] = ()
    """The columns by which rows replace others; none: all rows are added."""
    timeout: float = 60.0
    """How many seconds a server or a lock is waited for."""

    @staticmethod
    def read(options: Options) -> PostgresOptions:
        """Read the options; SettingError if one is wrong."""
        conninfo = conninfo_of(options)
        table = options.required("table", "results")
        create, given = options.flag("create", False), "mode" in options
        upsert = options.choice("mode", ("append", "upsert")) == "upsert"
        key = tuple(name.strip() for name in options.text("key").split(",") if name.strip())
        if upsert != bool(key):
            raise SettingError("mode 'upsert' needs an option key, as in key 'id', and key needs mode 'upsert'")
        timeout = options.seconds("timeout", "1 minute")
        options.done()
        return PostgresOptions(conninfo, table, create, given and not upsert, key, timeout)


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
        self._claimed = False
        """Whether this run keeps others out of the table, which the connection does."""

    @property
    def name(self) -> str:
        """The table's name."""
        return f"the PostgreSQL table {self._options.table}"

    def check(self) -> None:
        """SettingError if the table is missing, has other columns or may not be written to; JobError if the database
        cannot be reached."""
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
            kind = JobError if isinstance(error, _AGAIN) else SettingError
            raise kind(f"cannot write to {self.name}: {self._why(error)}") from None

    def open(self) -> None:
        """Make the table if it is missing, and the table of batch numbers; keep other runs out."""
        try:
            with self._transaction() as cursor:
                if self._found(cursor) is None:
                    self._create(cursor)
                self._make_numbers(cursor)
                if not self._options.shared:
                    self._claim(cursor)
        except psycopg.Error as error:
            raise JobError(f"cannot make {self.name}: {self._why(error)}") from None

    def newest(self, owner: BatchOwner) -> BatchMark | None:
        """The newest batch of this owner in the table."""
        try:
            with self._transaction() as cursor:
                if self._found(cursor) is None or not _exists(cursor, self._numbers.as_string()):
                    return None
                return _mark(cursor.execute(self._about(_NEWEST), self._of(owner)).fetchone())
        except psycopg.Error as error:
            raise JobError(f"cannot read {self.name}: {self._why(error)}") from None

    def add(self, rows: ReadRows, delivery: Delivery | None) -> None:
        """Write rows and the mark of their batch in one transaction, unless the batch is there."""
        for is_last in tries(1 if delivery is None else _TRIES, _PAUSE):
            try:
                with self._transaction() as cursor:
                    if delivery is None or self._is_new(cursor, delivery):
                        self._copy(cursor, rows)
                        reach("table: rows are copied")
                return
            except _AGAIN as error:  # perhaps the transaction is there: the next try finds its number
                self._disconnect()
                if is_last or isinstance(error, _WAITED):
                    raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None
            except psycopg.Error as error:
                raise JobError(f"cannot write to {self.name}: {self._why(error)}") from None

    def close(self) -> None:
        """End the connection, and let other runs in."""
        self._claimed = False
        self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _is_new(self, cursor: psycopg.Cursor[Any], delivery: Delivery) -> bool:
        """Lock the mark of the owner; returns whether the batch is not there yet, and then writes its mark."""
        mine = self._of(delivery.owner)
        cursor.execute(self._about("INSERT INTO {} VALUES (%(job)s, %(outlet)s, -1) ON CONFLICT DO NOTHING"), mine)
        found = cursor.execute(self._about(f"{_NEWEST} FOR UPDATE"), mine).fetchone()
        if not delivery.is_missing(self.name, _mark(found)):
            return False
        now = {**mine, "batch": delivery.mark.batch, "history": delivery.mark.history}
        cursor.execute(self._about("UPDATE {} SET batch = %(batch)s, history = %(history)s, at = now() WHERE {}"), now)
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
            self._connection = connected(self._options.conninfo, self._options.timeout)
            if self._claimed:  # the server may not have ended the lost session yet
                self._connection.execute(f"SELECT pg_advisory_lock({_CLAIM})", [self._target.as_string()])
                self._connection.commit()
        with self._connection.transaction(force_rollback=undo), self._connection.cursor() as cursor:
            yield cursor

    def _claim(self, cursor: psycopg.Cursor[Any]) -> None:
        """Keep other runs out of the table until the session ends; JobError if one is in it."""
        table = [self._target.as_string()]
        if cursor.execute(f"SELECT pg_try_advisory_lock({_CLAIM})", table).fetchone() == (True,):
            self._claimed = True
            return
        other = cursor.execute(_CLAIMANT, table).fetchone()
        pid = other[0] if other else "?"
        raise taken(self.name, f"its session is process {pid} of the server")

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
                    " at timestamptz DEFAULT now(), history bigint, PRIMARY KEY (job, outlet))"
                )
            )
        there = cursor.execute(_COLUMNS, [self._numbers.as_string()]).fetchall()
        if ("history",) not in there:  # made by an earlier version
            cursor.execute(self._about("ALTER TABLE {} ADD COLUMN IF NOT EXISTS history bigint"))

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
        text = why(error, self._options.timeout)
        return text.replace(self._secret, "***") if self._secret else text


def open_table(options: Options, partition_by: Sequence[str], schema: pa.Schema) -> PostgresTable:
    """The table that a sink names; SettingError if an option is wrong."""
    if partition_by:
        raise SettingError("postgres divides tables itself; leave PARTITION BY out")
    return PostgresTable(PostgresOptions.read(options), schema)


def _mark(found: Sequence[Any] | None) -> BatchMark | None:
    return None if found is None or found[0] < 0 else BatchMark(found[0], int(found[1] or 0))


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
