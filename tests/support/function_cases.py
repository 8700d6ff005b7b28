"""Calls of every function of the table, each over columns of the types that it takes and constants."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import pyarrow as pa

from eddyline.bound import functions
from eddyline.bound import types as t
from eddyline.bound.expr import Expr, columns_of
from eddyline.bound.types import TypeMismatch
from lab.fuzz.edge_values import EDGES, LISTED, NESTED
from tests.support.grid import Case, col, lit, table

FULL = "EDDYLINE_FULL" in os.environ
"""All pairs of types instead of a sample of them."""

TYPES = list(EDGES)
NUMBERS = [type for type in TYPES if t.is_number(type)]
MOMENTS = [t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ]
A, S, B = col(t.STRING), "a", col(t.STRING, 1)


def pairs() -> Iterator[tuple[pa.DataType, pa.DataType]]:
    for i, a in enumerate(TYPES):
        for j, b in enumerate(TYPES):
            if FULL or i == j or (i * 5 + j * 3) % 13 == 0:
                yield a, b


def binary(name: str, sql: str) -> Iterator[Case]:
    for a, b in pairs():
        yield Case(name, (col(a), col(b, 1)), sql)


def unary(name: str, sql: str, types: list[pa.DataType] = TYPES, variant: str = "") -> Iterator[Case]:
    for type in types:
        yield Case(name, (col(type),), sql, variant)


def texts(name: str, *constants: tuple[object, ...]) -> Iterator[Case]:
    for values in constants:
        written = ", ".join(["a", *map(sql_literal, values)])
        yield Case(name, (A, *map(lit, values)), f"{name}({written})")


def sql_literal(value: object) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def arithmetic(name: str) -> Iterator[Case]:
    yield from binary(name, f"a {name} b" if name in "+-*" else f"a {name} NULLIF(b, 0)")
    for type in NUMBERS:
        for value in (0, 1, -1, 3, 1000, 3_000_000_000):
            other = f"NULLIF({value}, 0)" if name in ("/", "//", "%") else f"({value})"
            if value or name in "+-*":
                yield Case(name, (col(type), lit(value)), f"a {name} {other if not value else f'({value})'}")
        yield Case(name, (lit(7), col(type)), f"7 {name} {'a' if name in '+-*' else 'NULLIF(a, 0)'}")
        yield Case(name, (col(type), lit(Decimal("1.5"), pa.decimal128(2, 1))), f"a {name} 1.5")
        yield Case(name, (col(type), lit(None)), f"a {name} NULL")
    if name in "+-":
        yield from unary(name, f"{name}a", [*NUMBERS, t.INTERVAL])
        for type in MOMENTS:
            yield Case(name, (col(type), lit(timedelta(days=1, seconds=5))), f"a {name} INTERVAL '1 day 5 seconds'")
            for months, days, micros in ((1, 0, 0), (-13, 2, 5), (25, -1, 0)):
                interval = lit(pa.scalar((months, days, micros * 1000), t.MONTHS).as_py(), t.MONTHS)
                written = f"INTERVAL '{months} months {days} days {micros} microseconds'"
                yield Case(name, (col(type), interval), f"a {name} {written}")
        yield Case(name, (col(t.DATE), lit(40)), f"a {name} 40")


def comparison(name: str) -> Iterator[Case]:
    yield from binary(name, f"a {name} b")
    for type in NUMBERS:
        for value in (0, 100, -1):
            yield Case(name, (col(type), lit(value)), f"a {name} {value}")
            yield Case(name, (lit(value), col(type)), f"{value} {name} a")
    yield Case(name, (col(t.DATE), lit("2000-02-29")), f"a {name} '2000-02-29'")
    yield Case(name, (col(t.TIMESTAMP), lit("2000-02-29 12:30:15.5")), f"a {name} '2000-02-29 12:30:15.5'")
    yield Case(name, (col(t.INT64), lit("2")), f"a {name} '2'")
    yield Case(name, (A, lit("abc")), f"a {name} 'abc'")
    yield Case(name, (col(t.DOUBLE), lit(float("nan"))), f"a {name} 'nan'::double")
    yield Case(name, (lit(float("nan")), col(t.FLOAT)), f"'nan'::double {name} a")
    fine = lit(Decimal("1.500000000001"), pa.decimal128(13, 12))
    yield Case(name, (col(pa.decimal128(10, 2)), fine), f"a {name} 1.500000000001")


def ternary(name: str, sql: str) -> Iterator[Case]:
    for type in (t.INT32, t.FLOAT, t.DATE, t.BOOL, pa.decimal128(4, 1)):
        yield Case(name, (col(type), col(type, 1), col(type, 2)), sql)


def membership() -> Iterator[Case]:
    yield from ternary("in", "a IN (b, c)")
    yield Case("in", (col(t.INT64), lit(1), lit(2), lit(-7)), "a IN (1, 2, -7)")
    yield Case("in", (col(t.INT64), lit(1), lit(None)), "a IN (1, NULL)")
    yield Case("in", (A, lit("a"), lit("abc"), lit("")), "a IN ('a', 'abc', '')")
    yield Case("in", (col(t.DOUBLE), lit(0), lit(float("nan"))), "a IN (0, 'nan'::double)")
    yield Case("in", (col(t.DATE), lit("2000-02-29"), lit("1970-01-01")), "a IN ('2000-02-29', '1970-01-01')")
    yield Case("in", (col(t.INT8), lit(1), lit(1000)), "a IN (1, 1000)")
    yield Case("in", (lit(1), col(t.INT8), col(t.INT16, 1)), "1 IN (a, b)")


def conditionals(name: str, sql: str) -> Iterator[Case]:
    yield from binary(name, sql)
    for type in NUMBERS:
        yield Case(name, (col(type), lit(1000)), sql.replace("b", "1000"))
        yield Case(name, (col(type), lit(None)), sql.replace("b", "NULL"))
    yield Case(name, (col(t.DATE), lit("2000-02-29")), sql.replace("b", "'2000-02-29'"))


def cases() -> Iterator[Case]:
    for type in (t.INT32, t.STRING, t.DOUBLE, pa.decimal128(10, 2), t.DATE, t.BOOL):
        yield Case("case", (col(t.BOOL), col(type, 1)), "CASE WHEN a THEN b END")
        yield Case("case", (col(t.BOOL), col(type, 1), lit(None)), "CASE WHEN a THEN b ELSE NULL END")
    args = (col(t.BOOL), col(t.INT8, 1), col(t.BOOL), lit(5), lit(1000))
    yield Case("case", args, "CASE WHEN a THEN b WHEN a THEN 5 ELSE 1000 END")
    yield Case(
        "case", (col(t.BOOL), lit(1), lit(Decimal("1.5"), pa.decimal128(2, 1))), "CASE WHEN a THEN 1 ELSE 1.5 END"
    )


_TARGETS = [
    "BOOLEAN",
    "TINYINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "UBIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(4,1)",
    "DECIMAL(18,3)",
    "DECIMAL(38,10)",
    "DECIMAL(38,0)",
    "VARCHAR",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE",
    "TIME",
]


def casts(name: str) -> Iterator[Case]:
    for type in TYPES:
        for target in _TARGETS:
            decoded = type == t.BINARY and target == "VARCHAR"  # on purpose not as DuckDB's CAST
            yield Case(name, (col(type),), "decode(a)" if decoded else f"{name}(a AS {target})", target)


def powers() -> Iterator[Case]:
    for a in (t.INT32, t.DOUBLE):
        for b in (t.INT8, t.DOUBLE):
            yield Case("pow", (col(a), col(b, 1)), "pow(a, b)")
        for value in (2, -1, 0, 1, 3):
            yield Case("pow", (col(a), lit(value)), f"pow(a, {value})")
            yield Case("pow", (lit(value), col(a)), f"pow({value}, a)")
        yield Case("pow", (col(a), lit(0.5)), "pow(a, 0.5::DOUBLE)")


def epochs(name: str, sql: str, variant: str = "") -> Iterator[Case]:
    """DuckDB adds the seconds of a TIMESTAMPTZ to its microseconds, so its last bits are others."""
    yield from unary(name, sql, [t.DATE, t.TIMESTAMP, t.INTERVAL], variant)
    yield Case(name, (col(t.TIMESTAMPTZ),), sql.replace("a)", "timezone('UTC', a))"), variant)


def parts() -> Iterator[Case]:
    units = [
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "doy",
        "dow",
        "isodow",
        "isoyear",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
        "epoch",
    ]
    for unit in units:
        if unit != "epoch":
            yield from unary("extract", f"extract({unit} FROM a)", MOMENTS, unit)
        yield Case("date_part", (lit(unit), col(t.TIMESTAMP)), f"date_part('{unit}', a)")
    yield from epochs("extract", "extract(epoch FROM a)", "epoch")


def spans(name: str, units: list[str], moments: int) -> Iterator[Case]:
    for unit in units:
        for type in MOMENTS:
            args = tuple(col(type, i) for i in range(moments))
            yield Case(name, args, f"{name}('{unit}', {', '.join('ab'[:moments])})", unit)
        yield Case(
            name,
            (lit(unit), *(col(t.DATE, i) for i in range(moments))),
            f"{name}('{unit}', {', '.join('ab'[:moments])})",
        )


_FIXED = ["microsecond", "millisecond", "second", "minute", "hour", "day"]
_FORMAT = "%Y-%m-%d %H:%M:%S.%f %j %y %a %A %b %B %p %I %w %u %% x"
_LIKES = ["", "%", "_", "a%", "%b", "%a%", "a_b", "%é%", "_%", "a\\%b", "é", "12%", "%,%,%", "A B", "%ß_"]
_NEEDLES: list[tuple[object, ...]] = [("",), ("a",), ("b",), ("é",), ("x ",), (None,)]

CASES: dict[str, Callable[[], Iterator[Case]]] = {
    **{name: (lambda name=name: arithmetic(name)) for name in ("+", "-", "*", "/", "//", "%")},
    **{name: (lambda name=name: comparison(name)) for name in ("=", "<>", "<", "<=", ">", ">=")},
    "is distinct from": lambda: binary("is distinct from", "a IS DISTINCT FROM b"),
    "is not distinct from": lambda: binary("is not distinct from", "a IS NOT DISTINCT FROM b"),
    "between": lambda: ternary("between", "a BETWEEN b AND c"),
    "in": membership,
    "and": lambda: iter([Case("and", (col(t.BOOL), col(t.BOOL, 1), col(t.BOOL, 2)), "a AND b AND c")]),
    "or": lambda: iter([Case("or", (col(t.BOOL), col(t.BOOL, 1), col(t.BOOL, 2)), "a OR b OR c")]),
    "not": lambda: unary("not", "NOT a", [t.BOOL]),
    "is null": lambda: unary("is null", "a IS NULL"),
    "is not null": lambda: unary("is not null", "a IS NOT NULL"),
    "case": cases,
    "if": lambda: iter([Case("if", (col(t.BOOL), col(t.INT8, 1), lit(1000)), "if(a, b, 1000)")]),
    **{
        name: (lambda name=name: conditionals(name, f"{name}(a, b)"))
        for name in ("coalesce", "ifnull", "greatest", "least")
    },
    "nullif": lambda: conditionals("nullif", "nullif(a, b)"),
    "cast": lambda: casts("cast"),
    "try_cast": lambda: casts("try_cast"),
    "abs": lambda: unary("abs", "abs(a)", NUMBERS),
    "round": lambda: (
        Case("round", (col(type), *map(lit, n)), f"round({', '.join(['a', *map(str, n)])})")
        for type in NUMBERS
        for n in ((), (0,), (1,), (2,), (-1,), (-2,), (12,), (-20,))
    ),
    **{
        name: (lambda name=name: unary(name, f"{name}(a)", NUMBERS))
        for name in (
            "sign",
            "floor",
            "ceil",
            "trunc",
            "sqrt",
            "exp",
            "ln",
            "log10",
            "log2",
            "isnan",
            "isinf",
            "isfinite",
        )
    },
    "pow": powers,
    "pi": lambda: iter([Case("pi", (), "pi() + (a IS NULL)::int * 0")]),
    "||": lambda: binary("||", "a || b"),
    "concat": lambda: binary("concat", "concat(a, b)"),
    "concat_ws": lambda: (
        Case("concat_ws", (lit("-"), A, col(x, 1), A), "concat_ws('-', a, b, a)") for x in (t.STRING, t.INT8)
    ),
    **{name: (lambda name=name: unary(name, f"{name}(a)", [t.STRING])) for name in ("upper", "lower", "length")},
    **{
        name: (lambda name=name: texts(name, (), ("a",), (" é",), ("",), ("\\",)))
        for name in ("trim", "ltrim", "rtrim")
    },
    "substring": lambda: texts(
        "substring", *((i,) for i in range(-3, 4)), *((i, n) for i in range(-4, 5) for n in range(-3, 5))
    ),
    "left": lambda: texts("left", *((i,) for i in range(-4, 5))),
    "right": lambda: texts("right", *((i,) for i in range(-4, 5))),
    "replace": lambda: texts("replace", ("a", "xyz"), ("a", ""), ("", "x"), ("aa", "a"), ("é", "e"), (None, "a")),
    **{
        name: (
            lambda name=name: iter(
                [
                    *texts(name, *_NEEDLES),
                    Case(name, (A, B), f"{name}(a, b)"),
                    Case(name, (lit("abc"), A), f"{name}('abc', a)"),
                ]
            )
        )
        for name in ("starts_with", "ends_with", "contains", "strpos")
    },
    **{
        name: (lambda name=name: texts(name, *((i, c) for i in (-1, 0, 1, 3, 9) for c in ("x", "é", "ab", "xéz", ""))))
        for name in ("lpad", "rpad")
    },
    "repeat": lambda: texts("repeat", *((n,) for n in (-1, 0, 1, 2, 7, None))),
    "ascii": lambda: unary("ascii", "ascii(a)", [t.STRING]),
    "chr": lambda: unary("chr", "chr(a)", [t.INT8, t.INT16, t.INT32, t.UINT8, t.UINT16]),
    "decode": lambda: unary("decode", "decode(a)", [t.BINARY]),
    "encode": lambda: unary("encode", "encode(a)", [t.STRING]),
    "split_part": lambda: texts("split_part", *((c, i) for c in (",", "a", "ab") for i in (1, 2, 3, 4, 9))),
    **{
        name: (
            lambda name=name: iter(
                [Case(name, (A, lit(p)), f"a {name.upper()} {sql_literal(p)}") for p in _LIKES]
                + [
                    Case(name, (A, lit(p), lit("\\")), f"a {name.upper()} {sql_literal(p)} ESCAPE '\\'")
                    for p in ("a\\%b", "a\\_b", "\\\\", "%\\%%")
                ]
            )
        )
        for name in ("like", "ilike", "not like", "not ilike")
    },
    "regexp_matches": lambda: texts(
        "regexp_matches", ("a.b",), ("^a",), ("b$",), (r"\d+",), ("[é😀]",), ("(?i)A",), ("",), (None,)
    ),
    "date_trunc": lambda: spans("date_trunc", [*_FIXED, "week", "month", "quarter", "year"], 1),
    "extract": parts,
    "date_diff": lambda: spans("date_diff", [*_FIXED, "month", "quarter", "year"], 2),
    "time_bucket": lambda: (
        Case("time_bucket", (lit(timedelta(seconds=s)), col(type)), f"time_bucket(INTERVAL '{s} seconds', a)")
        for s in (1, 420, 86_400, 604_800)
        for type in (t.TIMESTAMP, t.TIMESTAMPTZ)
    ),
    "epoch": lambda: epochs("epoch", "epoch(a)"),
    "epoch_ms": lambda: unary("epoch_ms", "epoch_ms(a)", [*MOMENTS, t.INT32, t.UINT32, t.INT64]),
    "epoch_us": lambda: unary("epoch_us", "epoch_us(a)", MOMENTS),
    "make_timestamp": lambda: unary("make_timestamp", "make_timestamp(a)", [t.INT32, t.UINT32]),
    "make_timestamp_ms": lambda: unary("make_timestamp_ms", "make_timestamp_ms(a)", [t.INT32, t.UINT32]),
    "to_timestamp": lambda: unary("to_timestamp", "to_timestamp(a)", NUMBERS),
    **{
        name: (lambda name=name: texts(name, ("%Y-%m-%d",), ("%Y-%m-%d %H:%M:%S.%f",), ("%d",), (None,)))
        for name in ("strptime", "try_strptime")
    },
    "timezone": lambda: (
        Case("timezone", (lit(zone), col(type)), f"timezone('{zone}', a)")
        for zone in ("Europe/Berlin", "asia/tokyo", "UTC")
        for type in (t.TIMESTAMP, t.TIMESTAMPTZ)
    ),
    "last_day": lambda: unary("last_day", "last_day(a)", MOMENTS),
    "dayname": lambda: unary("dayname", "dayname(a)", MOMENTS),
    "monthname": lambda: unary("monthname", "monthname(a)", MOMENTS),
    "strftime": lambda: (
        Case("strftime", (col(type), lit(f)), f"strftime(a, '{f}')")
        for type in MOMENTS
        for f in (_FORMAT, "plain", "%d")
    ),
}


def fields() -> Iterator[Case]:
    for name in ("a", "A", "b C"):
        yield Case("struct_extract", (col(NESTED),), f'a."{name}"', name)
        yield Case("struct_extract", (col(NESTED), lit(name)), f"struct_extract(a, '{name}')")
    inner = functions.call("struct_extract", [col(NESTED)], "n")
    for name, type in (("d", ""), ("m", "::TIMESTAMP")):  # there it is one of milliseconds
        yield Case("struct_extract", (inner,), f"(a.n.{name}){type}", name)


def jsons(name: str, *paths: object) -> Iterator[Case]:
    """More of them in test_json.py. DuckDB takes NaN for JSON."""
    text = functions.call("nullif", [A, lit("nan")])
    for path in paths:
        written = ", ".join(["nullif(a, 'nan')", *([] if path is None else [sql_literal(path)])])
        cast = "::VARCHAR" if name == "json_extract" else ""
        yield Case(name, (text, *([] if path is None else [lit(path)])), f"{name}({written}){cast}")


def elements() -> Iterator[Case]:
    for place in (1, 2, 3, 4, 0, -1, -3, -4, None):
        yield Case("list_extract", (col(LISTED), lit(place)), f"a[{'NULL' if place is None else place}]")
    for type in (t.INT8, t.INT32, t.INT64):
        yield Case("list_extract", (col(LISTED), col(type, 1)), "a[b]")
    first = functions.call("list_extract", [col(LISTED), lit(1)])
    inner = functions.call("struct_extract", [first], "l")
    yield Case("struct_extract", (first,), "a[1].x", "x")
    yield Case("array_extract", (inner, lit(-1)), "a[1].l[-1]")


def sizes() -> Iterator[Case]:
    yield Case("array_length", (col(LISTED),), "array_length(a)")
    yield Case("length", (col(LISTED),), "length(a)")


CASES["struct_extract"] = fields
CASES["array_length"] = sizes
CASES["list_extract"] = elements
CASES |= {
    "json_extract_string": lambda: jsons("json_extract_string", "$", "a", 0),
    "json_extract": lambda: jsons("json_extract", "$", "a", 0),
    "json_array_length": lambda: jsons("json_array_length", None, "$"),
    "json_valid": lambda: jsons("json_valid", None),
}


def typed(name: str) -> list[tuple[Case, Expr]]:
    """The cases of a function whose arguments it takes."""
    found = []
    for case in CASES[name]():
        with suppress(TypeMismatch):
            found.append((case, case.expr()))
    return found


def columns(case: Case) -> pa.Table:
    """Every combination of edge values of the columns that a case has."""
    used = {c.name: c.type for a in case.args for c in columns_of(a)}
    return table(tuple(used[n] for n in "abc" if n in used) or (t.BOOL,))
