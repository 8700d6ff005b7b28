"""Random expressions, through parser, binder and evaluator, against DuckDB: the generator that the fuzzer uses."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
import sqlglot

from eddyline.bound import functions
from eddyline.bound import types as t
from eddyline.bound.bind import bind
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Call, Expr, SourceColumn, walk
from eddyline.cql.dialect import EDDYLINE
from eddyline.cql.script import parse
from eddyline.testing.rewrite import attempt
from lab.fuzz.edge_values import EDGES
from lab.fuzz.expressions import TEMPLATES, random_expr
from tests.support.grid import plain, same

COLUMNS: dict[str, pa.Array] = {}
WANTED = [t.BOOL, t.INT64, t.DOUBLE, t.STRING, t.DATE, t.TIMESTAMP, t.INTERVAL, pa.decimal128(18, 3), t.INT16, t.FLOAT]
ROWS = 24


def data(rng: random.Random) -> pa.Table:
    """A column of every type, of tame values: what the fuzzer's data look like."""
    columns = {}
    for number, (type, values) in enumerate(EDGES.items()):
        if t.is_integer(type):
            values = [None, 0, 1, 2, 3, 5, 7, 100, *([-1, -7] if type in t.SIGNED else [])]
        elif type in t.FLOATS:
            values = [None, 0.0, -0.0, 1.5, -2.5, 0.125, 3.0, float("nan"), float("inf"), 40.0]
        elif type == t.DATE or pa.types.is_timestamp(type):
            values = [v for v in values if v is None or 1800 < v.year < 2100]
        elif pa.types.is_decimal(type):
            values = [v for v in values if v is None or abs(v) < 10_000]
        elif type == t.STRING:
            values = [v for v in values if v != "nan"]  # DuckDB takes NaN for JSON
        columns[f"c{number}"] = pa.array([rng.choice(values) for _ in range(ROWS)], type)
    columns["ts"] = pa.array(range(ROWS), pa.timestamp("us"))
    return pa.table(columns)


def columns_of(table: pa.Table) -> list[tuple[str, pa.DataType]]:
    """The columns as SQL writes them, the sizes and elements of lists, and the fields of structs."""
    columns = [(f"s.{f.name}", f.type) for f in table.schema if f.name != "ts"]
    lists = [(c, type) for c, type in columns if t.is_list(type)]
    columns += [(f"array_length({c})", t.INT64) for c, _ in lists]
    columns += [(f"{c}[{place}]", type.value_type) for c, type in lists for place in (1, -1)]
    return columns + [(f'{c}."{f.name}"', f.type) for c, type in columns if pa.types.is_struct(type) for f in type]


def bound(texts: list[str], schema: pa.Schema) -> list[Expr]:
    items = ", ".join(f"{text} AS r{i}" for i, text in enumerate(texts))
    script = parse(f"CREATE STREAM s USING parquet OPTIONS (path 'x') TIMESTAMP BY ts; SELECT {items} FROM s")
    return [output.expr for output in bind(script, lambda declaration: schema).outputs]


def guarded(text: str) -> str:
    return attempt(sqlglot.parse_one(text, dialect=EDDYLINE), lambda node: None).sql("duckdb")


@pytest.mark.long
def test_random_expressions_as_duckdb() -> None:
    from tests.support.grid import CONNECTION

    rng = random.Random(7)
    drawn: set[str] = set()
    for _ in range(20):
        table = data(rng)
        columns = columns_of(table)
        texts = [random_expr(rng, rng.choice(WANTED), columns, rng.randint(1, 3)) for _ in range(25)]
        CONNECTION.register("s", table)
        env: dict[Expr, pa.Array] = {
            SourceColumn(0, n, table[n].type): table[n].combine_chunks() for n in table.column_names
        }
        for text, expr in zip(texts, bound(texts, table.schema), strict=True):
            drawn |= {e.name for e in walk(expr) if isinstance(e, Call)}
            mine = evaluate(expr, env, ROWS, ErrorCount())
            answer = CONNECTION.sql(
                f"SELECT {guarded(text)} AS r, typeof({guarded(text)}) AS t FROM s"
            ).to_arrow_table()
            assert t.sql_type(mine.type) == answer["t"][0].as_py(), text
            for row, (a, b) in enumerate(zip(plain(mine), plain(answer["r"].combine_chunks()), strict=True)):
                assert same(a, b), f"{text} at {table.slice(row, 1).to_pylist()}: {a!r}, DuckDB {b!r}"


def test_templates_draw_every_function() -> None:
    """A function without a template would never be fuzzed."""
    rng = random.Random(3)
    table = data(rng)
    columns = columns_of(table)
    assert {"pi"} | _drawn(rng, columns, table.schema) >= {f.name for f in functions.table()} - {
        "not like",
        "not ilike",
        "ifnull",
        "if",
        "epoch",
    }
    written = " ".join(template for kind in TEMPLATES.values() for template in kind).lower()
    for name in ("not like", "not ilike", "ifnull(", "if(", "epoch(", "pi()"):
        assert name in written


def _drawn(rng: random.Random, columns: list[tuple[str, pa.DataType]], schema: pa.Schema) -> set[str]:
    texts = [random_expr(rng, rng.choice(WANTED), columns, 3) for _ in range(1500)]
    return {e.name for expr in bound(texts, schema) for e in walk(expr) if isinstance(e, Call)}
