"""Key codes decide equality (exact types) or never miss it (hashes); order codes keep the order."""

from __future__ import annotations

import math
from decimal import Decimal as D
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.state import keys
from tests.support.properties import examples

NAN = float("nan")
INTS = {8: [0, 1, -1, 127, -128], 16: [0, 1, -1, 2**15 - 1, -(2**15)], 32: [0, 1, -1, 2**31 - 1, -(2**31)]}
FLOATS = [0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf, NAN, -NAN]
TIMES = [0, 1, -1, 2**62, -(2**62), 2**63 - 1, -(2**63)]

EXACT: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False],
    pa.int8(): INTS[8],
    pa.int16(): INTS[16],
    pa.int32(): INTS[32],
    pa.int64(): TIMES,
    pa.uint8(): [0, 1, 255],
    pa.uint16(): [0, 1, 2**16 - 1],
    pa.uint32(): [0, 1, 2**31, 2**32 - 1],
    pa.uint64(): [0, 1, 2**63 - 1, 2**63, 2**64 - 1],
    pa.float16(): [np.float16(v) for v in (0.0, -0.0, 1, -1, math.inf, -math.inf, NAN)],
    pa.float32(): [0.0, -0.0, 1.5, -1.5, 1e-45, math.inf, -math.inf, NAN],
    pa.float64(): FLOATS,
    pa.decimal32(9, 2): [D("0"), D("-0.01"), D("0.01"), D("9999999.99"), D("-9999999.99")],
    pa.decimal64(18, 2): [D("0"), D("-0.01"), D("0.01"), D("9999999999999999.99"), D("-9999999999999999.99")],
    pa.decimal128(9, 2): [D("0"), D("-0.01"), D("0.01"), D("9999999.99"), D("-9999999.99")],
    pa.decimal128(18, 0): [D(0), D(-1), D(1), D(10**18 - 1), D(1 - 10**18)],
    pa.date32(): INTS[32],
    pa.date64(): [0, 86_400_000, -86_400_000],
    pa.time32("s"): [0, 1, 86_399],
    pa.time64("ns"): [0, 1000, 86_399 * 10**9],
    pa.timestamp("s"): [0, 1, -1, 2**40, -(2**40)],
    pa.timestamp("us"): TIMES,
    pa.timestamp("ns", "UTC"): [0, 1000, -1000, 2**50 * 1000, -(2**50) * 1000],
    pa.duration("us"): TIMES,
}
HASHED: dict[pa.DataType, list[object]] = {
    pa.decimal128(19, 0): [D(0), D(-1), D(1), D(2**63), D(-(2**63)), D(10**19 - 1)],
    pa.decimal128(38, 2): [D("0.00"), D("0.01"), D("-0.01"), D(2**64) / 100, D(-(10**35)), D(10**35)],
    **{t: ["", "a", "A", "aa", "ü", "x" * 100] for t in (pa.string(), pa.large_string(), pa.string_view())},
    **{t: [b"", b"\0", b"a", b"a\0", b"\xff" * 9] for t in (pa.binary(), pa.large_binary(), pa.binary_view())},
    pa.binary(2): [b"ab", b"ba", b"\0\0"],
    pa.dictionary(pa.int8(), pa.string()): ["", "a", "b"],
    pa.dictionary(pa.int16(), pa.int64()): [0, 5, -5],
    pa.dictionary(pa.int16(), pa.float64()): [0.0, -0.0, NAN],
}


def array_of(values: list[object], type_: pa.DataType) -> pa.Array:
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    return pa.array(values, type_)


def same(a: object, b: object) -> bool:
    """Equality as defined in docs/semantics.md."""
    return a == b or (a != a and b != b)


def less(a: object, b: object) -> bool:
    """NaN is the greatest."""
    return a == a and (b != b or a < b)  # type: ignore[operator]


@pytest.mark.parametrize("type_", [*EXACT, *HASHED], ids=str)
def test_equal_values_have_equal_codes_and_others_not(type_: pa.DataType) -> None:
    values = (EXACT | HASHED)[type_]
    codes = keys.encode(array_of(values, type_))
    assert codes.dtype == np.int64
    for (i, a), (j, b) in product(enumerate(values), repeat=2):
        assert (codes[i] == codes[j]) == same(a, b), (a, b)
    plain = not pa.types.is_dictionary(type_)
    assert keys.is_exact(type_) == (type_ in EXACT) or not plain


@pytest.mark.parametrize("type_", [*EXACT, *HASHED], ids=str)
def test_slices_have_the_codes_of_their_values(type_: pa.DataType) -> None:
    """A record batch that is a slice of a larger one has arrays with an offset."""
    values = (EXACT | HASHED)[type_]
    array = array_of(values, type_)
    whole = keys.encode(array)
    for start in range(len(values)):
        for stop in range(start, len(values) + 1):
            assert keys.encode(array.slice(start, stop - start)).tolist() == whole[start:stop].tolist()


@pytest.mark.parametrize("type_", list(EXACT), ids=str)
def test_order_codes_keep_the_order(type_: pa.DataType) -> None:
    assert keys.has_order(type_)
    values = EXACT[type_]
    codes = keys.in_order(array_of(values, type_))
    for (i, a), (j, b) in product(enumerate(values), repeat=2):
        assert (codes[i] < codes[j]) == less(a, b), (a, b)
        assert (codes[i] == codes[j]) == same(a, b), (a, b)


@pytest.mark.parametrize("type_", [t for t in HASHED if not pa.types.is_dictionary(t)], ids=str)
def test_hashed_types_have_no_order(type_: pa.DataType) -> None:
    assert not keys.has_order(type_)


@examples(200)
@given(st.lists(st.floats(), min_size=1, max_size=8))
def test_floats_in_order(values: list[float]) -> None:
    codes = keys.in_order(pa.array(values, pa.float64()))
    for (i, a), (j, b) in product(enumerate(values), repeat=2):
        assert (codes[i] < codes[j]) == less(a, b)
        assert (codes[i] == codes[j]) == same(a, b)


def test_types_of_one_kind_meet_by_value() -> None:
    """Both sides of an equality have one type, but strings have several layouts."""
    words = ["", "a", "ü"]
    codes = [keys.encode(pa.array(words, t)).tolist() for t in (pa.string(), pa.large_string(), pa.string_view())]
    codes.append(keys.encode(pa.array(words).dictionary_encode()).tolist())
    assert all(c == codes[0] for c in codes)


@pytest.mark.parametrize("type_", [*EXACT, *HASHED], ids=str)
def test_a_null_beside_them_changes_no_code(type_: pa.DataType) -> None:
    values = (EXACT | HASHED)[type_]
    codes = keys.encode(array_of([*values, None], type_))
    assert codes.dtype == np.int64
    assert codes[:-1].tolist() == keys.encode(array_of(values, type_)).tolist()


def test_nanoseconds_are_rounded_towards_the_past() -> None:
    assert keys.in_order(pa.array([-1, 999, 1000], pa.timestamp("ns"))).tolist() == [-1, 0, 1]


def test_an_unused_null_in_a_dictionary_does_not_matter() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0, 2, 0]), pa.array(["a", None, "b"]))
    assert keys.encode(array).tolist() == keys.encode(pa.array(["a", "b", "a"])).tolist()


def test_rows_without_null() -> None:
    assert keys.without_null([pa.array([1, 2]), pa.array(["a", "b"])]) is None
    found = keys.without_null([pa.array([1, None, 3, 4]), pa.array(["a", "b", None, "c"])])
    assert found is not None and found.tolist() == [True, False, False, True]
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    found = keys.without_null([hidden])
    assert found is not None and found.tolist() == [True, False, False]
    found = keys.without_null([hidden.slice(1)])
    assert found is not None and found.tolist() == [False, False]


def test_combined_keys() -> None:
    one, two = np.array([1, 1, 2, 2]), np.array([1, 2, 1, 2])
    assert len(set(keys.combine([one, two]).tolist())) == 4
    assert keys.combine([one]).tolist() == one.tolist()
    assert keys.combine([one, two, two]).tolist() == keys.combine([one.copy(), two.copy(), two[:]]).tolist()


def test_no_rows() -> None:
    for type_ in (*EXACT, *HASHED):
        assert keys.encode(array_of([], type_)).size == 0
