"""Conditions and values for random queries, as text: the edges of the join graph, bounds in time, filters, arguments.

Conditions that depend on the shape of a query are written here from templates; `expressions` makes arbitrary ones.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from eddyline.bound.types import logical
from lab.fuzz.expressions import random_expr
from lab.fuzz.timeline import amount


@dataclass(frozen=True)
class Alias:
    """An item of FROM: its columns, its join keys by the number of their domain, and its time column."""

    name: str
    stream: str
    columns: Mapping[str, pa.DataType]
    keys: tuple[str, ...]
    time: str | None
    style: str = ""

    def ref(self, column: str) -> str:
        """The column as it is written."""
        if self.style == "bare":
            return column
        return f"{self.name}.{column}".upper() if self.style == "upper" else f"{self.name}.{column}"


def interval(rng: random.Random, micros: int) -> str:
    """A length of time as a literal."""
    number, unit = amount(micros)
    return f"INTERVAL '{number}' {unit}" if rng.random() < 0.6 or number < 0 else f"INTERVAL {number} {unit}"


def is_number(type_: pa.DataType) -> bool:
    """Whether arithmetic with the type is possible. UBIGINT is left out: with a signed integer it has no result type
    here."""
    if type_ == pa.uint64():
        return False
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def is_opaque(type_: pa.DataType) -> bool:
    """Whether it is a payload type without functions."""
    return bool(pa.types.is_nested(type_) and not pa.types.is_dictionary(type_))


def equality(rng: random.Random, left: str, right: str, number: bool) -> str:
    """Two key columns are equal, mostly written plainly."""
    if rng.random() < 0.5:
        left, right = right, left
    plain = f"{left} = {right}"
    forms = [
        f"NOT ({left} <> {right})",
        f"{left} IN ({right})",
        f"{left} >= {right} AND {left} <= {right}",
        f"{left} BETWEEN {right} AND {right}",
    ]
    forms += [f"{left} IS NOT DISTINCT FROM {right}"] * 3
    if number:
        forms += [
            f"{left} + 1 = {right} + 1",
            f"{left} * 1 = {right}",
            f"CAST({left} AS DOUBLE) = {right}",
            f"{left} - {right} = 0",
        ]
    return plain if rng.random() < 0.75 else rng.choice(forms)


def theta(rng: random.Random, left: str, right: str, number: bool) -> str:
    """Two columns of one domain that are not equal, or near each other."""
    forms = [f"{left} {op} {right}" for op in ("<", "<=", ">", ">=", "<>")] + [f"{left} IS DISTINCT FROM {right}"]
    if number:
        forms += [
            f"{left} BETWEEN {right} AND {right} + 2",
            f"ABS({left} - {right}) <= 1",
            f"{left} < {right} + 1",
            f"{left} + {right} > 3",
        ]
    return rng.choice(forms)


def time_bound(rng: random.Random, a: str, b: str, width: int) -> str:
    """Two event times are at most `width` apart, one way or both, in one of the ways of writing it."""
    span, minus, half = interval(rng, width), interval(rng, -width), interval(rng, width // 2)
    forms = [
        f"{a} - {b} BETWEEN {minus} AND {span}",
        f"ABS({a} - {b}) <= {span}",
        f"ABS({a} - {b}) < {span}",
        f"{a} <= {b} + {span} AND {a} >= {b} - {span}",
        f"{a} BETWEEN {b} - {half} AND {b} + {span}",
        f"{b} - {a} < {span} AND {b} > {a} - {half}",
        f"{a} - {b} <= {span}",
        f"{a} > {b} - {span}",
        f"{span} >= {a} - {b} AND {minus} <= {a} - {b}",
        f"{a} >= {b}",
        f"{a} + {span} > {b}",
        f"epoch_us({a}) - epoch_us({b}) BETWEEN {-width} AND {width}",
    ]
    return rng.choice(forms)


def filter_of(rng: random.Random, alias: Alias, depth: int) -> str:
    """A condition on one stream."""
    column, type_ = rng.choice(list(alias.columns.items()))
    ref = alias.ref(column)
    if rng.random() < 0.4:
        return _arbitrary(rng, [alias], depth)
    if is_opaque(type_) or rng.random() < 0.1:
        return f"{ref} IS NOT NULL"
    kind = logical(type_)
    if is_number(kind):
        n = rng.randint(0, 9)
        forms = [
            f"{ref} > {n - 6}",
            f"{ref} <= {n + 3}",
            f"{ref} <> {n}",
            f"{ref} BETWEEN {n - 8} AND {n + 8}",
            f"{ref} IN (0, 1, 2, 3, {n})",
        ]
        return rng.choice(
            [
                *forms,
                f"{ref} NOT IN ({n}, {n + 1})",
                f"12 / {ref} > -100",
                f"fuzz_picky(CAST({ref} AS BIGINT)) > {n - 4}",
                f"NOT ({ref} < {n - 5})",
            ]
        )
    if pa.types.is_string(kind):
        return rng.choice(
            [
                f"{ref} <> 'a'",
                f"{ref} LIKE '%a%'",
                f"{ref} NOT LIKE 'b%'",
                f"length({ref}) < 5",
                f"upper({ref}) >= 'A'",
                f"fuzz_tag({ref}) LIKE '%#'",
                f"{ref} IN ('a', 'b', 'ab', 'abc', '')",
            ]
        )
    if pa.types.is_boolean(kind):
        return rng.choice([ref, f"NOT {ref}", f"{ref} OR {ref} IS NULL", f"{ref} = TRUE"])
    if pa.types.is_date(kind):
        return rng.choice([f"{ref} >= DATE '2023-12-20'", f"{ref} <> DATE '2023-12-09'", f"year({ref}) > 2000"])
    if pa.types.is_timestamp(kind):
        return rng.choice(
            [
                f"{ref} > TIMESTAMP '1969-01-01 00:00:00'",
                f"extract(minute FROM {ref}) < 50",
                f"{ref} IS NOT NULL",
                f"date_trunc('hour', {ref}) <> TIMESTAMP '2024-01-01 01:00:00'",
            ]
        )
    return f"{ref} IS NOT NULL"


def across(rng: random.Random, aliases: Sequence[Alias], depth: int) -> str:
    """A condition on two or three streams that is not an edge."""
    some = rng.sample(list(aliases), min(len(aliases), rng.choice([2, 2, 3])))
    numbers = [next((a.ref(c) for c, t in a.columns.items() if is_number(t)), "1") for a in some]
    if rng.random() < 0.5:
        return _arbitrary(rng, some, depth)
    forms = [
        f"{' + '.join(numbers)} > {rng.randint(-5, 10)}",
        f"{numbers[0]} = {numbers[-1]} OR {numbers[0]} > 2",
        f"CASE WHEN {numbers[0]} > 3 THEN {numbers[-1]} > 1 ELSE TRUE END",
        f"fuzz_near(CAST({numbers[0]} AS BIGINT), CAST({numbers[-1]} AS BIGINT)) OR {numbers[0]} IS NULL",
        f"COALESCE({numbers[0]} / ({numbers[-1]} - 2), 1) > -3",
    ]
    return rng.choice(forms)


def selection(rng: random.Random, aliases: Sequence[Alias]) -> str:
    """A condition on one stream, or on two, that calls a user function; most rows pass."""
    one, other = rng.choice(list(aliases)), rng.choice(list(aliases))
    numbers, more = ([a.ref(c) for c, t in a.columns.items() if is_number(logical(t))] for a in (one, other))
    strings = [one.ref(c) for c, t in one.columns.items() if pa.types.is_string(logical(t))]
    n = rng.randint(0, 9)
    forms = [f"fuzz_tag({ref}) <> 'a#'" for ref in strings]
    forms += [f"NOT fuzz_near(CAST({ref} AS BIGINT), {n + 3})" for ref in numbers]
    forms += [f"coalesce(fuzz_picky(CAST({ref} AS BIGINT)) <> {n}, TRUE)" for ref in numbers[:1]]
    forms += [
        f"fuzz_near(CAST({a} AS BIGINT), CAST({b} AS BIGINT)) OR {a} < 5" for a, b in zip(numbers, more, strict=False)
    ]
    return rng.choice(forms or ["fuzz_near(1, 2)"])


def _arbitrary(rng: random.Random, aliases: Sequence[Alias], depth: int) -> str:
    """Any condition. Random conditions are seldom true, so most are changed such that other rows pass too."""
    condition = random_expr(rng, pa.bool_(), _plain(aliases), depth)
    ref, type_ = rng.choice(_plain(aliases))
    other = f"{ref} > {rng.randint(0, 4)}" if is_number(logical(type_)) else f"{ref} IS NOT NULL"
    return rng.choice(
        [
            condition,
            f"NOT coalesce({condition}, FALSE)",
            f"{condition} OR {other}",
            f"{condition} OR NOT {condition}",
            f"coalesce({condition}, TRUE)",
        ]
    )


def value(rng: random.Random, aliases: Sequence[Alias], depth: int, type_: pa.DataType | None = None) -> str:
    """Any value: mostly a column, sometimes an expression over several streams."""
    if type_ is None and rng.random() < 0.7:
        alias = rng.choice(list(aliases))
        return alias.ref(rng.choice(list(alias.columns)))
    wanted = type_ or rng.choice(
        [pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.decimal128(18, 3)]
    )
    return random_expr(rng, wanted, _plain(aliases), depth)


def _plain(aliases: Sequence[Alias]) -> list[tuple[str, pa.DataType]]:
    """The values of some streams that functions take: columns, and the fields of structs."""
    columns = [(a.ref(c), t) for a in aliases for c, t in a.columns.items()]
    fields = [(f"{text}.{f.name}", f.type) for text, t in columns if pa.types.is_struct(t) for f in t]
    return [(text, t) for text, t in (*columns, *fields) if not is_opaque(t)]
