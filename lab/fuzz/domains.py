"""Values for random data: pools of a few values of one family, and columns drawn from them.

A join key is drawn from a pool that several streams share, so that the size of the pool is the selectivity of the
join. Numbers are small multiples of 1/8: sums of them are exact in float64 in whatever order they are added, so that
a difference in a sum is never only rounding.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
TYPES: dict[str, list[pa.DataType]] = {
    "int": [pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    "number": [
        pa.int64(), pa.int32(), pa.int8(), pa.uint16(), pa.float64(), pa.float32(), pa.decimal128(9, 2),
        pa.decimal128(20, 0),
    ],
    "big": [pa.int64(), pa.uint64(), pa.decimal128(38, 0)],
    "float": [pa.float64(), pa.float64(), pa.float32()],
    "string": [pa.string(), pa.string(), pa.large_string(), _DICTIONARY],
    "date": [pa.date32()],
    "timestamp": [
        pa.timestamp("us"), pa.timestamp("ms"), pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns"),
    ],
    "bool": [pa.bool_()],
    "decimal": [pa.decimal128(9, 2), pa.decimal128(18, 4), pa.decimal128(38, 3)],
    "binary": [pa.binary()],
}  # fmt: skip
_WORDS = [
    "",
    "a",
    "A",
    "b",
    "ab",
    "abc",
    "Abc",
    "ba",
    "é",
    "日本",
    "zz",
    "a b",
    "x_y",
    "a%",
    "10",
    "7",
    "a somewhat longer word",
    "-3",
    " a ",
    "ß",
]
_SPECIAL = [float("nan"), float("inf"), float("-inf"), -0.0, 0.0]
_EPOCH_DAY = 19_700


@dataclass(frozen=True)
class ValuePool:
    """A family of types, and the pool of values for its columns, without NULL."""

    family: str
    pool: tuple[object, ...]


def domain(rng: random.Random, family: str, size: int) -> ValuePool:
    """A pool of about `size` values."""
    return ValuePool(family, tuple(_pool(rng, family, max(1, size))))


def _pool(rng: random.Random, family: str, size: int) -> list[object]:
    if family in ("int", "number"):
        return list(range(min(size, 100)))
    if family == "big":
        base = rng.choice([2**31, 2**53, 2**62])
        return [base + i for i in range(size)]
    if family == "float":
        numbers = [rng.randint(-40, 40) / 8 for _ in range(size)]
        return [*numbers, *rng.sample(_SPECIAL, rng.randint(0, 3))]
    if family == "string":
        return [_WORDS[i % len(_WORDS)] + ("~" * (i // len(_WORDS))) for i in rng.sample(range(2 * size), size)]
    if family == "date":
        return [_EPOCH_DAY + i * rng.choice([1, 1, 31]) for i in range(size)]
    if family == "timestamp":
        return [(_EPOCH_DAY * 86_400 + i * 3_607) * 1_000_000 for i in range(size)]
    if family == "bool":
        return [True, False]
    if family == "decimal":
        return [Decimal(i - size // 3) / 4 for i in range(size)]
    return [bytes([i % 256]) * (i % 5) for i in range(size)]


def concrete(rng: random.Random, family: str) -> pa.DataType:
    """One of the family's Arrow types, the usual one most often."""
    types = TYPES[family]
    return types[0] if rng.random() < 0.4 else rng.choice(types)


def column(rng: random.Random, source: ValuePool, type_: pa.DataType, rows: int, nulls: float, skew: bool) -> pa.Array:
    """`rows` values; `nulls` is the share of NULLs, `skew` makes the first values of the pool much more frequent."""
    pool, last = source.pool, len(source.pool) - 1
    at = [int((last + 1) * rng.random() ** 3) if skew else rng.randint(0, last) for _ in range(rows)]
    return make([None if nulls and rng.random() < nulls else pool[i] for i in at], type_)


def nested(rng: random.Random, rows: int) -> pa.Array:
    """A column of lists or structs: payload that no predicate reads."""
    if rng.random() < 0.5:
        return pa.array([[i, None][: rng.randint(0, 2)] for i in range(rows)], pa.list_(pa.int64()))
    structs = [{"a": i, "b": "x" * (i % 3)} for i in range(rows)]
    return pa.array(structs, pa.struct([("a", pa.int64()), ("b", pa.string())]))


def make(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    """An array of any type in `TYPES` from plain values: numbers are converted, instants are microseconds."""
    if pa.types.is_dictionary(type_):
        return pa.array(values, pa.string()).dictionary_encode().cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(pa.timestamp("us", type_.tz)).cast(type_)
    if pa.types.is_date(type_):
        return pa.array(values, pa.int32()).cast(type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if v is None else Decimal(v) for v in values], type_)  # type: ignore[arg-type]
    if pa.types.is_floating(type_):
        return pa.array([None if v is None else float(v) for v in values], type_)  # type: ignore[arg-type]
    return pa.array(values, type_)
