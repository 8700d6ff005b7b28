"""Random SQL expressions that draw on every function of the table.

An expression is built from templates. Each hole of a template names a kind of value, and the expression in the hole has
exactly that type, by a cast where the functions' own rules would give another; so every expression is well typed. The
templates avoid the cases in which DuckDB and Eddyline differ: they use years of four digits, and formats and constants
that both know.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import pyarrow as pa

from eddyline.bound import types as t

_KINDS: dict[str, pa.DataType] = {
    "b": t.BOOL,
    "i": t.INT64,
    "d": t.DOUBLE,
    "m": pa.decimal128(18, 3),
    "s": t.STRING,
    "D": t.DATE,
    "t": t.TIMESTAMP,
    "v": t.INTERVAL,
    "B": t.BINARY,
}
_BY_TYPE = {type: kind for kind, type in _KINDS.items()}
_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year")

TEMPLATES: dict[str, tuple[str, ...]] = {
    "b": (
        "{c} = {c}", "{c} <> {c}", "{c} < {c}", "{c} <= {c}", "{c} > {c}", "{c} >= {c}", "{n} > {k}", "{s} = {w}",
        "{s} < {s}", "{c} IS DISTINCT FROM {c}", "{s} IS NOT DISTINCT FROM {s}", "{n} BETWEEN {k} AND {n}",
        "{n} NOT BETWEEN {n} AND {k}", "{c} IN ({k}, {k}, {c})", "{s} IN ({w}, {w}, NULL)", "{s} NOT IN ({w}, {w})",
        "{b} AND {b}", "{b} OR {b}", "NOT {b}", "{c} IS NULL", "{s} IS NOT NULL", "{s} LIKE {p}", "{s} NOT LIKE {p}",
        "{s} ILIKE {p}", "{s} NOT ILIKE {p}", "{s} LIKE 'x!_%' ESCAPE '!'", "starts_with({s}, {w})",
        "ends_with({s}, {s})", "contains({s}, {w})", "contains({s}, {s})", "regexp_matches({s}, '^[ab]+')",
        "isnan({d})", "isinf({d})", "isfinite({d})", "{D} < {D}", "{t} >= {t}", "{D} <= {t}", "{v} < {v}",
        "{t} > '2023-12-09 10:00:00'", "{D} = '2023-12-09'", "CASE WHEN {b} THEN {b} ELSE {b} END",
        "coalesce({b}, {b})", "{same}", "CAST({i} AS BOOLEAN)", "TRY_CAST({s} AS BOOLEAN)", "if({b}, {b}, {b})",
        "CASE {i} WHEN {k} THEN {b} WHEN {i} THEN {b} END", "nullif({d}, {d}) IS NULL", "{m} = ANYNUMBER",
        "json_valid({s})",
    ),
    "i": (
        "{n} + {n}", "{n} - {n}", "{n} * {k}", "{i} * {i}", "{i} // {k}", "{i} // {i}", "{i} % {k}", "mod({i}, {i})",
        "-{i}", "abs({i})", "sign({n})", "round({d})", "round({i}, -1)", "floor({m})", "ceil({d})", "trunc({m})",
        "length({s})", "strpos({s}, {w})", "strpos({s}, {s})", "greatest({n}, {k}, {n})", "least({n}, {n})",
        "coalesce({n}, {k})", "ifnull({i}, {n})", "nullif({i}, {k})", "if({b}, {n}, {k})",
        "CASE WHEN {b} THEN {n} WHEN {b} THEN {k} END", "CASE {n} WHEN {k} THEN {i} ELSE {n} END",
        "CAST({d} AS INTEGER)", "CAST({s} AS BIGINT)", "TRY_CAST({s} AS SMALLINT)", "CAST({m} AS TINYINT)",
        "CAST({b} AS INTEGER)", "extract({u} FROM {t})", "date_part('dow', {D})", "extract(isodow FROM {D})",
        "extract(doy FROM {t})", "week({D})", "extract(isoyear FROM {D})", "month({t})", "date_diff('{u}', {t}, {t})",
        "date_diff('{u}', {D}, {D})", "epoch_ms({t})", "epoch_us({t})", "{D} - {D}", "dayofweek({t})",
        "ascii({s})", "json_array_length({s})", "json_array_length('[' || {i} || ', 2]')",
    ),
    "d": (
        "{n} / {n}", "{n} / {k}", "{d} // {d}", "{d} + {n}", "{d} - {d}", "{d} * {n}", "{d} % {k}", "-{d}", "abs({d})",
        "round({d}, 2)", "round({d}, -1)", "floor({d})", "ceil({i})", "trunc({d})", "sqrt({n})", "exp({m} / 100)",
        "ln({n})", "log10({n})", "log2({i})", "pow({k}, {k})", "pi()", "epoch({t})", "epoch({v})",
        "extract(epoch FROM {D})", "CAST({s} AS DOUBLE)", "CAST({i} AS FLOAT)", "CAST({m} AS DOUBLE)",
        "coalesce({d}, {n})", "greatest({d}, {d})", "least({d}, {n})", "nullif({d}, {n})",
        "CASE WHEN {b} THEN {d} ELSE {k} END",
    ),
    "m": (
        "{m} + {m}", "{m} - {k}", "{m} * {k}", "{m} * 1.5", "{m} % 0.7", "{m} % {m}", "-{m}", "abs({m})",
        "round({m}, 1)", "floor({m})", "ceil({m})", "trunc({m})", "CAST({i} AS DECIMAL(10,2))",
        "CAST({d} AS DECIMAL(12,4))", "CAST({s} AS DECIMAL(8,2))", "coalesce({m}, {k})", "greatest({m}, 2.5)",
        "least({m}, {i})", "nullif({m}, {k})", "CASE WHEN {b} THEN {m} ELSE 0.25 END",
    ),
    "s": (
        "{s} || {s}", "{s} || {i}", "{s} || {m}", "concat({s}, {w}, {D})", "concat_ws('-', {s}, {i}, {s})",
        "upper({s})", "lower({s})", "trim({s})", "ltrim({s}, 'a ')", "rtrim({s}, 'b')", "substring({s}, 2)",
        "substring({s}, -2, 1)", "substr({s}, 1, 2)", "left({s}, 2)", "left({s}, -1)", "right({s}, 1)",
        "right({s}, -2)", "replace({s}, 'a', 'xy')", "lpad({s}, 4, '.')", "rpad({s}, 3, 'é')",
        "lpad({s}, 5, 'xyz')", "rpad({s}, 7, 'éa')", "repeat({s}, 2)", "chr(CAST(abs({i}) % 999 AS INTEGER))",
        "split_part({s}, 'a', 1)", "split_part({s}, ' ', 2)", "strftime({t}, '%Y-%m-%d %H:%M:%S.%f %a %j')",
        "strftime({D}, '%d %B %y')", "dayname({D})", "monthname({t})", "CAST({i} AS VARCHAR)", "CAST({m} AS VARCHAR)",
        "CAST({D} AS VARCHAR)", "CAST({t} AS VARCHAR)", "CAST({b} AS VARCHAR)", "coalesce({s}, {w})",
        "nullif({s}, {w})", "greatest({s}, {s})", "least({s}, {w})", "if({b}, {s}, {s})",
        "CASE {s} WHEN {w} THEN {s} ELSE {w} END", "decode({B})",
        "json_extract_string({s}, '$')", """json_extract_string('{"a": ' || {i} || '}', '$.a')""",
        """CAST(json_extract('{"a b": [' || {m} || ', null, "x"]}', '$."a b"') AS VARCHAR)""",
    ),
    "D": (
        "{D} + {k}", "{D} - {k}", "last_day({D})", "last_day({t})", "CAST({t} AS DATE)", "CAST(lower({s}) AS DATE)",
        "coalesce({D}, {D})", "greatest({D}, {D})", "least({D}, {D})", "nullif({D}, {D})",
        "CASE WHEN {b} THEN {D} END",
    ),
    "t": (
        "{t} + INTERVAL '90' MINUTE", "{t} - INTERVAL '1' MONTH", "{t} + INTERVAL '13' MONTH", "{t} + {v}",
        "{t} - {v}", "{D} + INTERVAL '1' DAY", "{D} + {v}", "date_trunc('{u}', {t})", "date_trunc('week', {D})",
        "time_bucket(INTERVAL '7' MINUTE, {t})", "CAST({D} AS TIMESTAMP)", "make_timestamp({i} % 1000 * 86399000001)",
        "epoch_ms({i} % 100000 * 86399001)", "make_timestamp_ms({i})", "CAST(to_timestamp({d}) AS TIMESTAMP)",
        "strptime(CAST({D} AS VARCHAR), '%Y-%m-%d')", "strptime({s}, '%d')", "try_strptime({s}, '%H')",
        "{t} AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'", "CAST(timezone('America/New_York', {t}) AS TIMESTAMP)",
        "CAST(upper({s}) AS TIMESTAMP)", "coalesce({t}, {D})", "greatest({t}, {t})", "least({t}, {D})",
        "nullif({t}, {D})", "CASE WHEN {b} THEN {t} ELSE {D} END",
    ),
    "v": (
        "{t} - {t}", "{t} - {D}", "{v} + {v}", "{v} - {v}", "-{v}", "coalesce({v}, {v})", "INTERVAL '3' HOUR",
        "INTERVAL '-5' SECOND", "nullif({v}, {v})", "CASE WHEN {b} THEN {v} END",
    ),
    "B": ("encode({s})", "coalesce({B}, {B})", "CASE WHEN {b} THEN {B} ELSE {B} END"),
}  # fmt: skip
"""The templates by the kind of their result. Holes: the kinds, n any number but UBIGINT, c any number, k a small whole
number, w a word, p a LIKE pattern, u a unit of time."""

_CAST_AFTER = frozenset("idmtD")
"""Kinds whose templates may give another type of the same family."""
_WORDS = ("''", "'a'", "'ab'", "'A'", "'b'", "'é'", "'a b'", "'10'", "' a '", "'%'", "'zz'")
_PATTERNS = ("'%'", "'a%'", "'%b'", "'%a%'", "'_'", "'a_'", "'%é%'", "''", "'A%'", "'_b%'", "'10'")
_HOLE = re.compile(r"\{(same|[a-zA-Z])\}")


def random_expr(rng: random.Random, type: pa.DataType, columns: Sequence[tuple[str, pa.DataType]], depth: int) -> str:
    """The text of a random expression of the type over the columns, at most `depth` calls deep.

    >>> random_expr(random.Random(1), pa.bool_(), [("a.x", pa.int64()), ("a.s", pa.string())], 0)
    'FALSE'
    """
    return _Writer(rng, columns).typed(type, depth)


class _Writer:
    def __init__(self, rng: random.Random, columns: Sequence[tuple[str, pa.DataType]]) -> None:
        self.rng = rng
        self.columns = [(text, type, t.logical(type)) for text, type in columns if not t.is_opaque(type)]

    def typed(self, type: pa.DataType, depth: int) -> str:
        wanted = t.logical(type)
        if wanted in _BY_TYPE:
            return self.kind(_BY_TYPE[wanted], depth)
        if t.is_number(wanted):
            source = "d" if wanted == t.FLOAT else "m" if pa.types.is_decimal(wanted) else "i"
            return f"CAST({self.kind(source, depth)} AS {t.sql_type(wanted)})"
        if t.is_zoned(wanted):
            return f"CAST({self.kind('t', depth)} AS TIMESTAMPTZ)"
        same = [text for text, _, known in self.columns if known == wanted]
        return self.rng.choice(same) if same else f"CAST(NULL AS {t.sql_type(wanted)})"

    def kind(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf(kind)
        template = self.rng.choice(TEMPLATES[kind]).replace("ANYNUMBER", self.any_number(0))
        text = _HOLE.sub(lambda hole: self.fill(hole[1], depth - 1), template)
        return f"CAST({text} AS {t.sql_type(_KINDS[kind])})" if kind in _CAST_AFTER else f"({text})"

    def fill(self, hole: str, depth: int) -> str:
        if hole in _KINDS:
            return self.kind(hole, depth)
        if hole == "k":
            return str(self.rng.randint(0, 9))
        if hole == "w":
            return self.rng.choice(_WORDS)
        if hole == "p":
            return self.rng.choice(_PATTERNS)
        if hole == "u":
            return self.rng.choice(_UNITS)
        if hole == "same":
            return self.same()
        return self.any_number(depth, unsigned=hole == "c")

    def any_number(self, depth: int, unsigned: bool = False) -> str:
        """A number of any type, without a cast."""
        known = [
            text
            for text, _, type in self.columns
            if t.is_number(type) and (unsigned or type != t.UINT64) and not _is_wide(type)
        ]
        if known and self.rng.random() < 0.5:
            return self.rng.choice(known)
        return self.kind(self.rng.choice("iidm"), depth)

    def same(self) -> str:
        """Two columns of one type, compared."""
        left, _, type = self.rng.choice(self.columns) if self.columns else ("1", None, None)
        right = self.rng.choice([text for text, _, other in self.columns if other == type] or [left])
        return f"{left} {self.rng.choice(('=', '<>', '<', '>=', 'IS NOT DISTINCT FROM'))} {right}"

    def leaf(self, kind: str) -> str:
        wanted = _KINDS[kind]
        same = [text for text, type, _ in self.columns if type == wanted]
        near = [f"CAST({text} AS {t.sql_type(wanted)})" for text, _, type in self.columns if _castable(type, wanted)]
        if (same or near) and self.rng.random() < 0.8:
            return self.rng.choice(same or near)
        return self.constant(kind)

    def constant(self, kind: str) -> str:
        if self.rng.random() < 0.05:
            return f"CAST(NULL AS {t.sql_type(_KINDS[kind])})"
        number = self.rng.randint(-20, 20)
        if kind == "b":
            return self.rng.choice(("TRUE", "FALSE"))
        if kind == "s":
            return self.rng.choice(_WORDS)
        if kind == "B":
            return f"encode({self.rng.choice(_WORDS)})"
        if kind == "v":
            return f"INTERVAL '{number}' MINUTE"
        if kind == "D":
            return f"DATE '20{self.rng.randint(10, 30)}-0{self.rng.randint(1, 9)}-2{self.rng.randint(0, 8)}'"
        if kind == "t":
            day, hour, second = (self.rng.randint(1, 9) for _ in range(3))
            return f"TIMESTAMP '2023-12-0{day} 1{hour}:00:0{second}.5'"
        return f"CAST({number / 8 if kind in 'dm' else number} AS {t.sql_type(_KINDS[kind])})"


def _is_wide(type: pa.DataType) -> bool:
    """Whether it is a decimal so wide that DuckDB may overflow in sums and comparisons with other decimals."""
    return bool(pa.types.is_decimal(type) and type.precision > 28)


def _castable(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a column of one type may be cast to serve as a value of another type."""
    if t.is_number(source) and t.is_number(target):
        return True
    if target == t.TIMESTAMP:
        return bool(source == t.DATE or pa.types.is_timestamp(source))
    return bool(source == target)
