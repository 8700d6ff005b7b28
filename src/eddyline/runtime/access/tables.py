"""Tables that are asked, as CREATE TABLE declares them: their options, and the clients that ask them.

Options are checked here, once; nothing is connected. Passwords come from environment variables only: `url_env`,
`password_env` and the like name the variable, and its value is in no message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module

import pyarrow as pa

from eddyline.bound.model import AccessMethod
from eddyline.bound.types import sql_type
from eddyline.cql.declaration import Declaration, DeclaredMethod, place_of_method, place_of_option
from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.access.client import AccessClient
from eddyline.runtime.access.client_options import ClientKind
from eddyline.runtime.options import Options
from eddyline.runtime.values.text import readable_type

FORMATS = ("postgres", "sqlite", "duckdb", "redis", "http", "python")
_NEEDS = {
    "postgres": ("psycopg", "psycopg", "postgres"),
    "duckdb": ("duckdb", "duckdb", "duckdb"),
    "redis": ("valkey", "valkey-py", "redis"),
    "http": ("aiohttp", "aiohttp", "http"),
}
"""The library of a format, and the extra of Eddyline that installs it."""
_OF_TABLE = ("ttl", "cache_rows")
"""Options that an access method cannot have: answers of all methods are kept together."""


@dataclass(frozen=True)
class AccessOptions:
    """The options that all access methods have; times are in seconds."""

    concurrency: int
    """Requests at the same time."""
    batch: int
    """Keys of one request."""
    timeout: float
    """How long a lookup may take, with all its tries."""
    retries: int
    rate: float | None
    """Requests per second."""
    ttl: float | None
    """How long an answer is true."""
    cache_rows: int | None
    """How many rows are kept."""


@dataclass(frozen=True)
class AccessTable:
    """A table that is asked."""

    name: str
    format: str
    schema: pa.Schema
    options: AccessOptions
    kind: ClientKind
    columns: tuple[str, ...]
    """The columns of answers."""
    place: int = 0
    """Where it is asked: access methods whose options are equal are at the same place."""
    elsewhere: Mapping[int, AccessTable] = field(default_factory=dict)
    """The table as those access methods ask it that are at another place."""

    def at(self, method: int) -> AccessTable:
        """The table at the place of an access method."""
        return self.elsewhere.get(method, self)

    @property
    def places(self) -> list[AccessTable]:
        """The table at each of its places."""
        return [self, *{table.place: table for table in self.elsewhere.values()}.values()]

    def check(self, methods: Sequence[AccessMethod]) -> None:
        """SettingError if the table has no such access methods."""
        indexes = {number: method.columns for number, method in enumerate(methods) if not method.is_scan}
        if len(indexes) < len(methods) and not self.kind.scans:
            raise SettingError(f"table {self.name}: {self.format} cannot give all rows; leave SCAN out")
        for number, columns in indexes.items():
            for name in columns:
                type_ = self.schema.field(name).type
                if pa.types.is_nested(type_) or pa.types.is_duration(type_):
                    raise SettingError(f"table {self.name}: INDEX ON ({name}): {sql_type(type_)} is not a key")
            if why := self.at(number).kind.no_index(columns):
                raise SettingError(f"table {self.name}: INDEX ON ({', '.join(columns)}): {why}")
        if len(set(indexes.values())) > 1 and self.kind.one_index:
            raise SettingError(f"table {self.name}: {self.format} has one INDEX, by its key")

    @property
    def no_rows(self) -> pa.RecordBatch:
        """An answer without rows."""
        schema = pa.schema([self.schema.field(name) for name in self.columns])
        return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)

    def open(self) -> AccessClient:
        """A client, which connects when it is asked first. Its event loop must be the running one."""
        return self.kind.open()


def open_table(declaration: Declaration, schema: pa.Schema, columns: Sequence[str] | None = None) -> AccessTable:
    """The table that a CREATE TABLE with access methods declares. Its answers have these columns, at least one, or all;
    SettingError if an option is wrong, or the library of its format is missing. Nothing is connected."""
    if declaration.format not in FORMATS:
        hint = did_you_mean(declaration.format, FORMATS)
        raise SettingError(f"'{declaration.format}' cannot be asked for rows{hint}", "format")
    opened: dict[frozenset[tuple[str, str]], AccessTable] = {}
    tables = []
    for number, method in enumerate(declaration.methods or [DeclaredMethod()]):
        _check_own(method, number)
        options = {**declaration.options, **method.options}
        place = frozenset(options.items())
        if place not in opened:
            try:
                table = _open(declaration, options, schema, columns)
            except SettingError as error:
                key = error.at.removeprefix("option ")
                at = place_of_option(number, key) if key in method.options else error.at or place_of_method(number)
                raise (SettingError(str(error), at) if method.options else error) from None
            opened[place] = replace(table, place=len(opened))
        tables.append(opened[place])
    first = tables[0]
    return replace(first, elsewhere={number: table for number, table in enumerate(tables) if table is not first})


def _check_own(method: DeclaredMethod, number: int) -> None:
    for key in method.options:
        if key in _OF_TABLE:
            message = f"option {key} is for all access methods; write it in the OPTIONS of the table"
            raise SettingError(message, place_of_option(number, key))


def _open(
    declaration: Declaration, given: Mapping[str, str], schema: pa.Schema, columns: Sequence[str] | None
) -> AccessTable:
    """The table at the place that these options give."""
    format_, options = declaration.format, Options(declaration.format, given, declaration.spelled)
    kind_of: Callable[[Options, pa.Schema, int], ClientKind]
    try:
        kind_of = import_module(f"eddyline.runtime.access.{format_}").kind_of
    except ModuleNotFoundError as error:
        if format_ not in _NEEDS:
            raise
        _, library, extra = _NEEDS[format_]
        raise SettingError(f"{format_} needs {library} ({error}); type: {install(extra)}") from None
    concurrency = options.whole("concurrency", 8, 1)
    kind = kind_of(options, schema, concurrency)
    if not kind.any_type:
        for field in schema:
            if not readable_type(field.type) and not (kind.nested and pa.types.is_nested(field.type)):
                type_ = sql_type(field.type)
                raise SettingError(f"column {field.name}: a value of type {type_} cannot be read from {format_}")
    batch = options.whole("batch", kind.batch, 1)
    if batch > 1 and kind.batch == 1:
        raise SettingError(f"option batch: {kind.why_single}", "option batch")
    read = AccessOptions(
        concurrency=concurrency,
        batch=batch,
        timeout=options.seconds("timeout", "30 seconds"),
        retries=options.whole("retries", 3),
        rate=_rate(options),
        ttl=options.seconds("ttl", "") if "ttl" in options else None,
        cache_rows=options.whole("cache_rows", 0, 1) if "cache_rows" in options else None,
    )
    options.done()
    names = tuple(schema.names if columns is None else columns)
    return AccessTable(declaration.name, format_, schema, read, kind, names)


def _rate(options: Options) -> float | None:
    text = options.text("rate")
    try:
        rate = float(text) if text else None
    except ValueError:
        rate = -1.0
    if rate is not None and not 0 < rate < float("inf"):
        raise SettingError(f"option rate is a number of requests per second, not '{text}'", "option rate")
    return rate
