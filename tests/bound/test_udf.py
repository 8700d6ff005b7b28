"""User functions: what they get, what becomes of what they give."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.bound import types as t
from eddyline.bound import udf as module
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn, is_expensive
from eddyline.bound.functions import TypeMismatch, call, names
from eddyline.bound.functions.table import USER
from eddyline.bound.udf import registered, udf
from eddyline.errors import JobError, SettingError

X, S = SourceColumn(0, "x", t.INT64), SourceColumn(0, "s", t.STRING)


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    before, users = dict(module._REGISTERED), dict(USER)
    yield
    for now, then in ((module._REGISTERED, before), (USER, users)):
        now.clear()
        now.update(then)  # type: ignore[arg-type]


def run(name: str, *args: object, **columns: pa.Array) -> tuple[pa.Array, int]:
    errors = ErrorCount()
    env = {SourceColumn(0, key, array.type): array for key, array in columns.items()}
    expr = call(name, args)  # type: ignore[arg-type]
    return evaluate(expr, env, len(next(iter(columns.values()))), errors), errors.count


def test_numpy_functions_never_see_null() -> None:
    seen = []

    @udf(returns="BIGINT")
    def Twice(x: np.ndarray) -> np.ndarray:
        seen.append(x.dtype)
        return x * 2

    result, failed = run("TWICE", X, x=pa.array([1, None, 3]))
    assert result.to_pylist() == [2, None, 6] and failed == 0 and result.type == t.INT64
    assert seen == [np.dtype(np.int64)]
    assert is_expensive(call("twice", [X])) and "twice" in registered() and "twice" not in names()
    assert run("twice", X, x=pa.array([None, None], t.INT64))[0].to_pylist() == [None, None]
    assert len(seen) == 1, "there was nothing to compute"


def test_arrow_functions_see_null_and_constants_as_arrays() -> None:
    @udf(returns=t.STRING, arrays="arrow", name="join_with")
    def _(s: pa.Array, by: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(s.fill_null("?"), by, "")

    assert run("join_with", S, Literal("!", t.STRING), s=pa.array(["a", None]))[0].to_pylist() == ["a!", "?!"]


def test_rows_that_raise_are_null_and_counted() -> None:
    @udf(returns="DOUBLE")
    def picky(x: np.ndarray) -> np.ndarray:
        if (x % 10 == 3).any():
            raise RuntimeError("three")
        return x / 2

    result, failed = run("picky", X, x=pa.array([1, 3, None, 13, 4]))
    assert result.to_pylist() == [0.5, None, None, None, 2.0] and failed == 2


def first_error(name: str, x: pa.Array) -> str:
    errors = ErrorCount()
    evaluate(call(name, [X]), {X: x}, len(x), errors)
    return errors.first


def test_what_a_failing_function_said_first_is_kept() -> None:
    @udf(returns="BIGINT")
    def Mistaken(x: np.ndarray) -> np.ndarray:
        return x.to_pylist()

    @udf(returns="TINYINT")
    def wide(x: np.ndarray) -> np.ndarray:
        return x

    @udf(returns="BIGINT")
    def wordy(x: np.ndarray) -> np.ndarray:
        raise RuntimeError(f"{x[0]}" * 300 + "\nsecond line")

    @udf(returns="BIGINT")
    def fine(x: np.ndarray) -> np.ndarray:
        return x

    data = pa.array([300, None, 1])
    assert (
        first_error("mistaken", data) == "Mistaken: AttributeError: 'numpy.ndarray' object has no attribute 'to_pylist'"
    )
    assert first_error("wide", data).startswith("wide: its result is no TINYINT: ") and "300" in first_error(
        "wide", data
    )
    said = first_error("wordy", data)
    assert said.startswith("wordy: RuntimeError: 300300") and len(said) == 200 and said.isprintable()
    assert first_error("fine", data) == ""
    errors = ErrorCount()
    evaluate(call("/", [X, Literal(0, t.INT64)]), {X: data}, 3, errors)
    assert errors.count == 2 and errors.first == "", "only user functions and casts are worth a word"


def test_a_function_that_always_raises_is_called_about_once_per_row() -> None:
    calls = 0

    @udf(returns="BIGINT")
    def broken(x: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        if x.max() == 7777:
            return x if len(x) == 1 else x.nope
        raise KeyError("no")

    rows = 8192
    result, failed = run("broken", X, x=pa.array(range(rows)))
    assert failed == rows - 1 and result[7777].as_py() == 7777, "a row that can be computed is computed"
    assert calls <= 1.08 * rows


def test_results_are_cast_to_the_declared_type() -> None:
    @udf(returns="TINYINT")
    def small(x: np.ndarray) -> np.ndarray:
        return x

    result, failed = run("small", X, x=pa.array([1, 300, -5]))
    assert result.to_pylist() == [1, None, -5] and result.type == t.INT8 and failed == 1

    @udf(returns="TIMESTAMPTZ")
    def moment(x: np.ndarray) -> np.ndarray:
        return x.astype("M8[s]")

    assert run("moment", X, x=pa.array([1]))[0].type == t.TIMESTAMPTZ


def test_a_function_that_breaks_its_promise_stops_the_job() -> None:
    @udf(returns="BOOLEAN")
    def short(x: np.ndarray) -> np.ndarray:
        return x[:1] > 0

    @udf(returns="BOOLEAN")
    def scalar(x: np.ndarray) -> bool:
        return True

    @udf(returns="BOOLEAN")
    def dates(x: np.ndarray) -> np.ndarray:
        return x.astype("M8[s]")

    @udf(returns="BOOLEAN")
    def flat(x: np.ndarray) -> np.ndarray:
        return np.array(True)

    for name, words in (
        ("flat", "an array of 0 dimensions for 2 rows"),
        ("short", "1 values for 2 rows"),
        ("scalar", "bool for 2 rows"),
        ("dates", "did not give BOOLEAN"),
    ):
        with pytest.raises(JobError, match=words):
            run(name, X, x=pa.array([1, 2]))


def test_wrong_registrations_and_calls() -> None:
    for make in (
        lambda: udf(returns="NOSUCH"),
        lambda: udf(returns="BIGINT", arrays="pandas"),
        lambda: udf(returns="BIGINT", name="upper")(len),
        lambda: udf(returns="BIGINT", name="a b")(len),
    ):
        with pytest.raises(SettingError):
            make()

    @udf(returns="BIGINT")
    def one(x: np.ndarray) -> np.ndarray:
        return x

    with pytest.raises(TypeMismatch, match="does not take 2 arguments"):
        call("one", [X, X])
