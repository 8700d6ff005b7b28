"""Accumulators alone: any split merges to the same, sums are exact, floats behave as DuckDB's."""

from __future__ import annotations

import datetime
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound import exact_sum
from eddyline.bound.aggregates import State, accumulator, state_types, weighed
from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Aggregate, SourceColumn
from eddyline.bound.group_ids import decoded
from eddyline.errors import InternalError


def of(name: str, type_: pa.DataType, distinct: bool = False) -> Aggregate:
    results = {"count": pa.int64(), "min": type_, "max": type_}
    exact = pa.decimal128(38, getattr(type_, "scale", 0)) if not pa.types.is_floating(type_) else pa.float64()
    result = exact if name == "sum" else results.get(name, pa.float64())
    return Aggregate(name, SourceColumn(0, "x", type_), distinct, result)


def one(aggregate: Aggregate, values: pa.Array, errors: ErrorCount | None = None, parts: int = 1) -> Any:
    """The aggregate of all values as one group, computed from `parts` partial states."""
    how, size, values = accumulator(aggregate), -(-len(values) // parts), decoded(values)
    pieces = [values.slice(i, size) for i in range(0, len(values), size)]
    states = [how.partial(piece, np.zeros(len(piece), np.int64), 1) for piece in pieces]
    stacked: State = {n: pa.concat_arrays([s[n] for s in states]) for n in states[0]}
    state = how.merge(stacked, np.zeros(len(states), np.int64), 1)
    return how.final(state, errors or ErrorCount())[0].as_py()


@pytest.mark.parametrize("type_", [pa.int8(), pa.uint32(), pa.int64(), pa.uint64(), pa.decimal128(38, 6), pa.bool_()])
def test_sums_are_exact(type_: pa.DataType) -> None:
    rng = random.Random(str(type_))
    for case in range(30):
        rows = rng.choice([1, 2, 50, 300])
        if pa.types.is_boolean(type_):
            values: list[Any] = [rng.random() < 0.5 for _ in range(rows)]
        elif pa.types.is_decimal(type_):
            values = [Decimal(rng.randrange(-(10**35), 10**35)).scaleb(-6) for _ in range(rows)]
        else:
            unsigned = pa.types.is_unsigned_integer(type_)
            low, high = (0, 2**type_.bit_width - 1) if unsigned else (-(2 ** (type_.bit_width - 1)), 2**7 - 1)
            values = [rng.choice([low, high, rng.randint(low, high)]) for _ in range(rows)]
        with localcontext() as context:
            context.prec = 60
            total = sum(Decimal(v) for v in values)
        array = pa.array([None, *values], type_)
        assert one(of("sum", type_), array, parts=1 + case % 4) == total
        exactly = float(Fraction(total) / rows)
        assert one(of("avg", type_), array, parts=1 + case % 4) == pytest.approx(exactly, rel=1e-15, abs=0)


def test_sum_beyond_38_digits_is_null_and_counted() -> None:
    type_ = pa.decimal128(38, 0)
    largest = Decimal("9" * 38)
    for sign, extreme in ((1, largest), (-1, largest.copy_negate())):
        errors = ErrorCount()
        assert one(of("sum", type_), pa.array([extreme], type_), errors) == extreme
        assert errors.count == 0
        assert one(of("sum", type_), pa.array([extreme, Decimal(sign)], type_), errors) is None
        assert errors.count == 1
        many = pa.array([extreme] * 1000, type_)
        assert one(of("sum", type_), many, errors, parts=7) is None
        assert one(of("avg", type_), many, errors, parts=7) == pytest.approx(sign * 1e38)
        assert errors.count == 2
    back = pa.array([largest] * 2 + [largest.copy_negate()] * 2 + [Decimal(5)], type_)
    assert one(of("sum", type_), back, parts=5) == 5, "only the end result can overflow"


def test_limbs_carry_signs() -> None:
    numbers = [0, 1, -1, 2**31, -(2**31), 2**32, -(2**32), 2**63 - 1, -(2**63)]
    limbs = exact_sum.normalised(exact_sum.limbs_of(pa.array(numbers)))
    for k, number in enumerate(numbers):
        assert sum(int(limb[k]) << (32 * place) for place, limb in enumerate(limbs)) == number
    assert exact_sum.to_float(limbs).tolist() == [float(n) for n in numbers]
    assert exact_sum.to_decimal(limbs, pa.decimal128(38, 0), np.zeros(9, bool))[0].to_pylist() == numbers


@pytest.mark.parametrize("name", ["sum", "avg", "min", "max", "var_samp", "stddev_samp"])
def test_special_floats_as_in_duckdb(name: str) -> None:
    inf, nan = math.inf, math.nan
    cases = [[inf], [inf, 1.0], [inf, -inf], [nan], [nan, 1.0], [1.0, nan, inf], [0.0, -0.0], [-0.0], [1e308, -1e308]]
    cases += [[1e200, 1e200, 1e200], [inf, inf], [-inf, 2.0], [0.1] * 7, [1e9 + k for k in range(9)], [5.0]]
    for case in cases:
        if name in ("var_samp", "stddev_samp") and 1e308 in case:
            continue  # overflows inside DuckDB's own formula
        values = ", ".join(f"('{x}'::DOUBLE)" for x in case)
        row = duckdb.sql(f"SELECT {name}(x) FROM (VALUES {values}) t(x)").fetchall()[0]
        for parts in (1, 2, 3):
            got = one(of(name, pa.float64()), pa.array([*case, None]), parts=parts)
            assert (got is None) == (row[0] is None), case
            assert got is None or got == pytest.approx(row[0], rel=1e-12, abs=1e-12, nan_ok=True), case


@pytest.mark.parametrize("name", ["var_samp", "stddev_samp"])
def test_variance_does_not_cancel(name: str) -> None:
    values = np.random.default_rng(3).normal(1e9, 1e-3, 20_000)
    mean = sum(map(Fraction, values.tolist())) / 20_000
    exact = sum((Fraction(v) - mean) ** 2 for v in values.tolist()) / 19_999
    expected = float(exact) if name == "var_samp" else math.sqrt(exact)
    for parts in (1, 10, 777):
        assert one(of(name, pa.float64()), pa.array(values), parts=parts) == pytest.approx(expected, rel=1e-5)
    assert one(of(name, pa.float64()), pa.array([0.1] * 1000), parts=30) == 0


def test_min_max_of_durations_and_other_layouts() -> None:
    second = datetime.timedelta(seconds=1)
    durations = pa.array([None, second, -second], pa.duration("us"))
    assert one(of("min", durations.type), durations) == -second and one(of("max", durations.type), durations) == second
    for type_ in (pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.large_string()):
        text = pa.array(["b", None, "a", "c"]).cast(type_)
        assert [one(of(f, type_), text, parts=2) for f in ("min", "max", "count")] == ["a", "c", 3]
        assert one(of("count", type_, distinct=True), text, parts=2) == 3
    small = pa.array([Decimal("1.5"), None, Decimal("-2.5")], pa.decimal128(5, 1)).cast(pa.decimal32(5, 1))
    assert [one(of(f, small.type), small, parts=2) for f in ("min", "sum", "avg")] == [Decimal("-2.5"), -1, -0.5]
    half = pa.array(np.array([1.5, -2.5], np.float16))
    assert [one(of(f, half.type), half, parts=2) for f in ("max", "sum", "var_samp")] == [1.5, -1.0, 8.0]


def test_a_null_inside_a_dictionary_is_null() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None], pa.int8()), pa.array(["a", None]))
    for distinct in (False, True):
        assert one(of("count", coded.type, distinct), coded) == 1
    assert one(of("max", coded.type), coded) == "a"


def test_nothing_but_null() -> None:
    nothing = pa.array([None, None], pa.float64())
    for name in ("sum", "avg", "min", "max", "var_samp", "stddev_samp"):
        assert one(of(name, pa.float64()), nothing, parts=2) is None
        assert one(of(name, pa.int32()), nothing.cast(pa.int32()), parts=2) is None
    assert one(of("count", pa.float64()), nothing) == one(of("count", pa.float64(), True), nothing, parts=2) == 0


REPEATED = [
    (name, type_, distinct)
    for name in ("count", "sum", "avg", "var_samp", "stddev_samp", "min", "max")
    for type_ in (pa.int64(), pa.uint64(), pa.float64(), pa.decimal128(30, 2), pa.bool_())
    for distinct in (False, True)
    if not distinct or name == "count"
] + [(name, pa.string(), False) for name in ("count", "min", "max")]


@pytest.mark.parametrize(("name", "type_", "distinct"), REPEATED, ids=str)
def test_a_state_repeated_is_that_of_repeated_rows(name: str, type_: pa.DataType, distinct: bool) -> None:
    rng, how = random.Random(f"{name} {type_}"), accumulator(of(name, type_, distinct))
    for _ in range(20):
        rows = rng.choice([1, 5, 30])
        numbers = [rng.choice([None, 0, 1, 2**40 + 1, rng.randrange(2**60)]) for _ in range(rows)]
        whole = pa.array(numbers, pa.int64())
        if pa.types.is_decimal(type_):
            whole = whole.cast(pa.decimal128(28, 0))
        values = pa.concat_arrays([whole.cast(type_, safe=False), pa.nulls(3, type_)])
        ids = np.array([rng.randrange(3) for _ in range(rows)] + [0, 1, 2])
        times = np.array([rng.choice([1, 2, 7, 100]) for _ in range(3)])
        again = np.repeat(np.arange(len(ids)), times[ids])
        expected = how.final(how.partial(values.take(pa.array(again)), ids[again], 3), ErrorCount()).to_pylist()
        found = how.final(how.repeated(how.partial(values, ids, 3), times), ErrorCount()).to_pylist()
        added = how.final(weighed(how, values, times[ids], ids, 3), ErrorCount()).to_pylist()
        for some in (found, added):
            assert [pytest.approx(v, rel=1e-12) if isinstance(v, float) else v for v in some] == expected


@pytest.mark.parametrize("times", [1, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**45 + 3, 2**62])
def test_weights_do_not_overflow_limbs(times: int) -> None:
    rng = random.Random(times)
    numbers = [
        rng.choice([0, 1, -1, 2**32 - 1, -(2**32), 2**63 - 1, -(2**63), rng.randrange(2**62)]) for _ in range(50)
    ]
    limbs = exact_sum.normalised(exact_sum.limbs_of(pa.array(numbers, pa.int64())))
    found = exact_sum.times(limbs, np.array([times] * 50))
    assert [sum(int(limb[i]) << 32 * k for k, limb in enumerate(found)) for i in range(50)] == [
        n * times for n in numbers
    ]
    assert all((limb >= 0).all() and (limb < 2**32).all() for limb in found[:-1])


def test_states_have_the_types_they_say() -> None:
    for name, type_, distinct in REPEATED:
        aggregate = of(name, type_, distinct)
        state = accumulator(aggregate).partial(pa.nulls(2, type_), np.array([0, 1]), 2)
        assert {n: column.type for n, column in state.items()} == state_types(aggregate)


def test_unknown_aggregates_are_our_bug() -> None:
    for name, distinct in (("median", False), ("sum", True)):
        with pytest.raises(InternalError):
            accumulator(of(name, pa.int64(), distinct))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_is_no_reason_for_a_warning(name: str) -> None:
    signalling = np.array([0x7FF4_0000_0000_0000, 0x3FF0_0000_0000_0000], np.uint64).view(np.float64)
    found = one(of(name, pa.float64()), pa.array(signalling))
    assert found == 1.0 if name == "min" else math.isnan(found)
