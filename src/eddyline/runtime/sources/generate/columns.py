"""The values of one generated column for a run of rows within one segment of a drift script, as an Arrow array.

A value is drawn in two steps: a number in the domain, by the distribution; then that number in the column's type.
Rows beyond the *selectivity* get a value outside the domain that (nearly surely) no other row has: it joins with
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.bound.types import sql_type
from eddyline.errors import SettingError
from eddyline.runtime.sources.generate.values import Distribution, Domain, Value

_EXACT_ZIPF = 1 << 20
_LARGEST = float(np.nextafter(2.0**63, 0))
"""The largest whole number: whole numbers are computed in int64 and float64."""
_MISS_BITS = {8: 6, 16: 14, 32: 30, 64: 61}
Floats = NDArray[np.float64]


def defaults(type_: pa.DataType, is_time: bool) -> dict[str, Value]:
    """The settings of a column of this type, with their default values."""
    if is_time:
        return {}
    if pa.types.is_temporal(type_):
        return {"nulls": 0.0}
    if pa.types.is_boolean(type_):
        return {"nulls": 0.0, "selectivity": 0.5}
    plain: dict[str, Value] = {"nulls": 0.0, "distribution": Distribution("uniform")}
    if pa.types.is_floating(type_):
        return {**plain, "domain": Domain(0.0, 1.0)}
    if pa.types.is_decimal(type_):
        return {**plain, "domain": Domain(0.0, min(100.0, _most(type_)))}
    if pa.types.is_signed_integer(type_) or pa.types.is_string(type_):
        return {**plain, "domain": Domain(0.0, 99.0), "selectivity": 1.0}
    if pa.types.is_integer(type_):
        return {**plain, "domain": Domain(0.0, 99.0)}
    raise SettingError(f"generate cannot make values of type {sql_type(type_)}")


def check(name: str, type_: pa.DataType, settings: Mapping[str, Value]) -> None:
    """SettingError for a domain that the column's type cannot hold, or from which its distribution cannot draw."""
    domain, distribution = settings.get("domain"), settings.get("distribution")
    if not isinstance(domain, Domain):
        return
    if domain.words and not pa.types.is_string(type_):
        raise SettingError(f"{name}.domain: only a text column has words")
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        if isinstance(distribution, Distribution) and distribution.name == "zipf":
            raise SettingError(f"{name}.distribution: zipf draws whole numbers or words, not fractions")
        most = _most(type_)
        least, low = -most, domain.low
    else:
        bits = type_.bit_width if pa.types.is_integer(type_) else 64
        signed = not pa.types.is_unsigned_integer(type_)
        least, most = (-(2.0 ** (bits - 1)) if signed else 0.0), min(2.0 ** (bits - signed) - 1, _LARGEST)
        misses = settings.get("selectivity", 1.0) != 1.0 and not domain.words
        low = min(domain.low, 0) - (1 << _MISS_BITS[bits]) if misses else domain.low
    if low < least or domain.high > most:
        room = " and the values outside of it that selectivity asks for" if low < least <= domain.low else ""
        raise SettingError(
            f"{name}.domain: {domain.low:.15g}..{domain.high:.15g}{room} must lie within {least:.15g}..{most:.15g},"
            f" the range of {sql_type(type_)}"
        )


def _most(type_: pa.DataType) -> float:
    """The largest number in a column of fractions."""
    if pa.types.is_decimal(type_):
        return float(min(10.0**type_.precision - 1, _LARGEST) / 10.0**type_.scale)
    return float(np.finfo(np.float32 if type_ == pa.float32() else np.float64).max)


@dataclass(frozen=True)
class RowsToMake:
    """The rows for which values are made: their numbers, event times (microseconds) and places within the segment (0 to
    1)."""

    numbers: NDArray[np.int64]
    times: NDArray[np.int64]
    places: Floats
    rng: np.random.Generator

    def __len__(self) -> int:
        return len(self.numbers)

    def between(self, first: float, last: float) -> Floats:
        """The value of a setting for each row, between its values at the ends of the segment."""
        return np.full(len(self), first) if first == last else first + (last - first) * self.places

    def chance(self, first: Value, last: Value) -> NDArray[np.bool_]:
        """For each row whether it is chosen, with a chance that moves from first to last. It always draws random
        numbers, so that a setting of one column does not change other columns."""
        assert isinstance(first, float) and isinstance(last, float)
        return self.rng.random(len(self)) < self.between(first, last)


def make(type_: pa.DataType, first: dict[str, Value], last: dict[str, Value], rows: RowsToMake) -> pa.Array:
    """The values of a column; `first` and `last` are its settings at the ends of the segment."""
    nulls = rows.chance(first["nulls"], last["nulls"])
    if pa.types.is_temporal(type_):
        values = pc.cast(pa.array(rows.times, pa.timestamp("us")), type_, safe=False)
    elif pa.types.is_boolean(type_):
        values = pa.array(rows.chance(first["selectivity"], last["selectivity"]))
    else:
        values = _drawn(type_, first, last, rows)
    return pc.if_else(pa.array(nulls), pa.scalar(None, type_), values) if nulls.any() else values


def _drawn(type_: pa.DataType, first: dict[str, Value], last: dict[str, Value], rows: RowsToMake) -> pa.Array:
    domain, end, distribution = first["domain"], last["domain"], first["distribution"]
    assert isinstance(domain, Domain) and isinstance(end, Domain) and isinstance(distribution, Distribution)
    low, high = rows.between(domain.low, end.low), rows.between(domain.high, end.high)
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return _continuous(type_, low, high, distribution, rows)
    low, high = np.floor(low), np.floor(high)
    fixed = domain == end
    numbers = (low + _steps(high - low + 1, distribution, rows, fixed)).astype(np.int64)
    if "selectivity" not in first:
        return pa.array(numbers).cast(type_)
    hits = rows.chance(first["selectivity"], last["selectivity"])
    width = type_.bit_width if pa.types.is_integer(type_) else 64
    misses = np.minimum(low, 0).astype(np.int64) - 1 - rows.rng.integers(0, 1 << _MISS_BITS[width], len(rows))
    if domain.words:
        values = pa.array(domain.words, pa.string()).take(pa.array(numbers))
        return values if hits.all() else pc.if_else(pa.array(hits), values, pa.array(misses).cast(pa.string()))
    return pa.array(np.where(hits, numbers, misses)).cast(type_)


def _steps(sizes: Floats, distribution: Distribution, rows: RowsToMake, fixed: bool) -> Floats:
    """Whole numbers from 0 to size - 1 for each row."""
    if distribution.name == "constant":
        return np.zeros(len(rows))
    if distribution.name == "sequence":
        return np.mod(rows.numbers, sizes)
    chance = rows.rng.random(len(rows))
    if distribution.name == "uniform":
        return np.minimum(np.floor(chance * sizes), sizes - 1)
    if fixed and sizes[0] <= _EXACT_ZIPF:
        return np.searchsorted(_zipf_shares(int(sizes[0]), distribution.exponent), chance, "right").astype(np.float64)
    power = 1 - distribution.exponent
    if abs(power) < 1e-9:
        stretched: Floats = (sizes + 1) ** chance
    else:
        stretched = (((sizes + 1) ** power - 1) * chance + 1) ** (1 / power)
    drawn: Floats = np.clip(np.floor(stretched) - 1, 0, sizes - 1)
    return drawn


@lru_cache(maxsize=64)
def _zipf_shares(size: int, exponent: float) -> Floats:
    """The cumulative shares of ranks 1..size without the last, so that a random number below 1 always finds a rank."""
    shares = np.cumsum(np.arange(1, size + 1, dtype=np.float64) ** -exponent)
    result: Floats = shares[:-1] / shares[-1]
    return result


def _continuous(
    type_: pa.DataType, low: Floats, high: Floats, distribution: Distribution, rows: RowsToMake
) -> pa.Array:
    if distribution.name == "uniform":
        values = low + (high - low) * rows.rng.random(len(rows))
    elif distribution.name == "constant":
        values = low
    elif distribution.name == "sequence":
        values = low + np.mod(rows.numbers, np.floor(high - low) + 1)
    else:
        raise AssertionError("check refuses zipf")
    if pa.types.is_floating(type_):
        return pa.array(values).cast(type_)
    unscaled = np.rint(values * 10.0**type_.scale).astype(np.int64)
    words = np.stack([unscaled, unscaled >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(38, type_.scale), len(values), [None, pa.py_buffer(words)]).cast(type_)
