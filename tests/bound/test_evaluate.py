"""The evaluator itself: errors found and counted, constants, zones, dictionaries, known nodes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate, mask
from eddyline.bound.expr import Call, Expr, Literal, SourceColumn, Value
from eddyline.bound.functions import TypeMismatch, aggregate, call, cast
from eddyline.errors import InternalError, JobError

X, Y, S = SourceColumn(0, "x", t.INT64), SourceColumn(0, "y", t.DOUBLE), SourceColumn(0, "s", t.STRING)


def number(value: int) -> Literal:
    return Literal(value, t.INT32)


def run(expr: Expr, **columns: pa.Array) -> tuple[list[object], int]:
    errors = ErrorCount()
    env = {SourceColumn(0, name, array.type): array for name, array in columns.items()}
    rows = len(next(iter(columns.values())))
    return evaluate(expr, env, rows, errors).to_pylist(), errors.count


def test_a_value_that_cannot_be_computed_is_null_at_its_node_and_counted() -> None:
    quotient = call("/", [X, call("-", [X, number(2)])])
    assert run(quotient, x=pa.array([1, 2, None, 4])) == ([-1.0, None, None, 2.0], 1)
    assert run(call("coalesce", [quotient, number(5)]), x=pa.array([1, 2])) == ([-1.0, 5.0], 1)


def test_constants_are_computed_once_and_fail_in_every_row() -> None:
    broken = call("//", [number(1), number(0)])
    assert run(broken, x=pa.array([1, 2, 3])) == ([None] * 3, 3)
    assert run(call("+", [number(1), number(1)]), x=pa.array([], t.INT64)) == ([], 0)
    assert run(broken, x=pa.array([], t.INT64)) == ([], 0)


@pytest.mark.parametrize("bad", [set(), {0}, {1023}, {5, 6, 700}, set(range(1024))])
def test_rows_that_make_a_kernel_raise_are_found(bad: set[int]) -> None:
    calls = 0

    def picky(args: list[Value], rows: int) -> pa.Array:
        nonlocal calls
        calls += 1
        if pc.any(pc.is_in(args[0], pa.array(sorted(bad), t.INT64)), min_count=0).as_py():
            raise ValueError("not this one")
        return pc.add(args[0], args[1])

    errors = ErrorCount()
    expr = Call("picky", (X, Literal(1, t.INT64)), t.INT64, picky)
    result = evaluate(expr, {X: pa.array(range(1024))}, 1024, errors)
    assert result.to_pylist() == [None if i in bad else i + 1 for i in range(1024)]
    assert errors.count == len(bad)
    assert calls <= min(1 + 36 * len(bad), 1100)


@pytest.mark.parametrize("error", [pa.ArrowCapacityError, MemoryError, pa.ArrowInvalid])
def test_rows_that_are_too_large_are_like_others_that_fail(error: type[Exception]) -> None:
    def large(args: list[Value], rows: int) -> pa.Array:
        if pc.sum(args[0]).as_py() > 100:
            raise error("too much")
        return args[0]

    expr = Call("large", (X,), t.INT64, large)
    assert run(expr, x=pa.array([60, 60, 101, 7])) == ([60, 60, None, 7], 1)


def test_strings_that_no_array_holds_stop_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eddyline.bound.functions.padding._ROOM", 1000)
    long = call("repeat", [S, number(100)])
    assert run(call("length", [long]), s=pa.array(["abcd"] * 5 + ["abcdefghijkl"])) == ([400] * 5 + [None], 1)
    monkeypatch.setattr("eddyline.bound.evaluate._ROOM", 1500)
    with pytest.raises(JobError, match="the values of repeat for 5 rows take more than 2 GB"):
        run(long, s=pa.array(["abcd"] * 5))


def test_constants_that_make_strings_too_long_are_refused() -> None:
    for name, more in (("lpad", [Literal("x", t.STRING)]), ("rpad", [Literal("x", t.STRING)]), ("repeat", [])):
        with pytest.raises(TypeMismatch, match="must be at most 10000, not 2000000000"):
            call(name, [S, number(2_000_000_000), *more])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ends_with", [False, True, True, False]),
        ("starts_with", [False, False, True, False]),
        ("contains", [False, True, True, True]),
        ("strpos", [0, 2, 1, 2]),
    ],
)
def test_nul_is_a_character(name: str, expected: list[object]) -> None:
    part = SourceColumn(0, "p", t.STRING)
    result = run(call(name, [S, part]), s=pa.array(["a", "a\0", "\0", "a\0b"]), p=pa.array(["\0"] * 4))
    assert result == (expected, 0)


def test_characters_that_do_not_exist() -> None:
    code = SourceColumn(0, "c", t.INT32)
    codes = pa.array([65, None, -1, 0xD800, 0x10FFFF, 0x110000], t.INT32)
    assert run(call("chr", [code]), c=codes) == (["A", None, None, None, "\U0010ffff", None], 3)


def test_mask_is_false_for_null() -> None:
    errors = ErrorCount()
    data = pa.array([1, None, 3, 4, 5])
    assert mask(call(">", [X, number(2)]), {X: data}, 5, errors).tolist() == [False, False, True, True, True]
    assert mask(call(">", [X, number(2)]), {X: data[1:4]}, 3, errors).tolist() == [False, True, True]
    assert mask(Literal(None, t.BOOL), {}, 2, errors).tolist() == [False, False]
    assert mask(Literal(True, t.BOOL), {}, 2, errors).dtype == np.bool_
    flag = SourceColumn(0, "f", t.BOOL)
    assert mask(flag, {flag: pa.array([True, None, False, True])[1:]}, 3, errors).tolist() == [False, False, True]


def test_any_node_may_be_known_already() -> None:
    total = aggregate("sum", X, False)
    assert total.type == pa.decimal128(38, 0)
    ratio = call("/", [total, number(2)])
    assert evaluate(ratio, {total: pa.array([7], total.type)}, 1, ErrorCount()).to_pylist() == [3.5]
    key = call("%", [X, number(3)])
    assert evaluate(call("+", [key, number(1)]), {key: pa.array([0, 2])}, 2, ErrorCount()).to_pylist() == [1, 3]
    with pytest.raises(InternalError):
        evaluate(X, {}, 1, ErrorCount())


def test_zones_live_in_the_type_only() -> None:
    berlin = pa.timestamp("us", "Europe/Berlin")
    a, b = SourceColumn(0, "a", berlin), SourceColumn(0, "b", pa.timestamp("ns"))
    env = {a: pa.array([0, 10**6], berlin), b: pa.array([999, 10**9], pa.timestamp("ns"))}
    assert evaluate(call("=", [a, b]), env, 2, ErrorCount()).to_pylist() == [True, True]
    day = call("date_trunc", [a], "day")
    assert day.type == berlin
    assert evaluate(day, env, 2, ErrorCount()).type == berlin
    assert evaluate(call("-", [a, b]), env, 2, ErrorCount()).type == t.INTERVAL


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int8(), pa.string()), pa.large_string(), pa.string_view()])
def test_other_layouts_of_strings(kind: pa.DataType) -> None:
    column = SourceColumn(0, "s", kind)
    values = ["b", None, "a", "b", "b", "a", "7"]
    data = pa.array(values).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    for expr in (
        call("=", [column, Literal("b", t.STRING)]),
        call("is null", [column]),
        call("coalesce", [column, Literal("x", t.STRING)]),
        call("upper", [column]),
        call("||", [Literal("<", t.STRING), column]),
        call("=", [column, column]),
        cast(column, t.INT32),
    ):
        plain = {column: pa.array(values)}
        counts = ErrorCount(), ErrorCount()
        assert evaluate(expr, {column: data}, 7, counts[0]).equals(evaluate(expr, plain, 7, counts[1])), expr
        assert counts[0].count == counts[1].count
    assert evaluate(column, {column: data}, 7, ErrorCount()).type == kind


def test_nested_types_are_opaque() -> None:
    nested = SourceColumn(0, "l", pa.list_(pa.int64()))
    data = pa.array([[1], None], nested.type)
    assert evaluate(call("is null", [nested]), {nested: data}, 2, ErrorCount()).to_pylist() == [False, True]
    assert aggregate("count", nested, False).type == t.INT64
    for make in (
        lambda: call("=", [nested, nested]),
        lambda: aggregate("max", nested, False),
        lambda: call("upper", [nested]),
    ):
        with pytest.raises(TypeMismatch):
            make()


def test_wide_decimals_compare_by_value() -> None:
    wide = SourceColumn(0, "w", pa.decimal128(38, 0))
    exact = call(">", [wide, Literal("1.5", t.STRING)])
    assert exact.type == t.BOOL
    from decimal import Decimal

    half = Literal(Decimal("1.5"), pa.decimal128(2, 1))
    data = pa.array([Decimal(1), Decimal(2), Decimal(10**37)], wide.type)
    assert evaluate(call(">", [wide, half]), {wide: data}, 3, ErrorCount()).to_pylist() == [False, True, True]


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("+", [S, X], "+ does not take (VARCHAR, BIGINT)"),
        ("=", [S, X], "write a CAST"),
        ("=", [X, Literal("x", t.STRING)], "'x' is no BIGINT"),
        ("nope", [X], "there is no function nope"),
        ("upper", [X], "write a CAST"),
        ("abs", [X, X], "abs takes 1 argument, not 2"),
        ("and", [X, X], "conditions (BOOLEAN)"),
        ("date_trunc", [Literal("eon", t.STRING), SourceColumn(0, "t", t.TIMESTAMP)], "no unit eon"),
        ("like", [S, S], "must be a constant"),
        ("coalesce", [X, SourceColumn(0, "u", t.UINT64)], "cast one to DECIMAL(20,0)"),
    ],
)
def test_refusals_say_what_would_be_right(name: str, args: list[Expr], message: str) -> None:
    with pytest.raises(TypeMismatch) as refused:
        call(name, args)
    assert message in str(refused.value)


def test_aggregate_types() -> None:
    price = SourceColumn(0, "p", pa.decimal128(10, 2))
    assert aggregate("SUM", price, False).type == pa.decimal128(38, 2)
    assert (
        aggregate("avg", X, False).type
        == aggregate("stddev", Y, False).type
        == aggregate("sum", Y, False).type
        == t.DOUBLE
    )
    assert aggregate("max", S, False).type == t.STRING
    assert aggregate("count", None, False).type == aggregate("count", S, True).type == t.INT64
    for make in (
        lambda: aggregate("sum", S, False),
        lambda: aggregate("median", S, False),
        lambda: aggregate("sum", None, False),
    ):
        with pytest.raises(TypeMismatch):
            make()


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.binary())])
def test_bytes_are_cast_as_utf_8_and_what_is_none_is_counted(type: pa.DataType) -> None:
    texts = ['{"name": "Zoë \\ 日本"}', "plain", None, '{"name": "Zoë \\ 日本"}']
    data = pa.array([None if text is None else text.encode() for text in texts], pa.binary()).cast(type)
    column = SourceColumn(0, "b", type)
    assert run(cast(column, t.STRING), b=data) == (texts, 0)
    assert run(call("decode", [column]), b=data) == (texts, 0)
    broken = pa.array([b"ok", b"\xff", None, b"\xff"], pa.binary()).cast(type)
    assert run(cast(column, t.STRING), b=broken) == (["ok", None, None, None], 2)
    assert run(cast(column, t.STRING, try_=True), b=broken) == (["ok", None, None, None], 0)


def test_a_dictionary_with_as_many_values_as_its_codes_can_number() -> None:
    words = pa.array([f"w{i}" for i in range(128)])
    coded = pa.DictionaryArray.from_arrays(pa.array([None, *range(128)] * 3, pa.int8()), words)
    values, failed = run(call("upper", [SourceColumn(0, "x", coded.type)]), x=coded)
    assert (values[:3], values[128], failed) == ([None, "W0", "W1"], "W127", 0)
