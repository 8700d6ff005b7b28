"""strptime over random texts and formats, as DuckDB reads them."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn
from eddyline.bound.functions import call
from eddyline.bound.types import TypeMismatch

TEXT = SourceColumn(0, "x", t.STRING)
FORMATS = [
    "%d.%m.%Y %H:%M:%S", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S.%f", "%m/%d/%y %I:%M %p", "%d%m%Y", "%Y%m%d%H%M%S", "%d1%m",
    "%-d %b %Y", "%A %d %B %Y", "%a, %d %b %Y %T %z", "%Y-%m-%d %H:%M:%S%z", "%H %p", "%g", "%n", "%S.%n", "%f%%",
    "%I%p", "%y%-m", " %d", "%d ", "x %H  y", "%Y", "%M:%S.%g",
]  # fmt: skip
PIECES = [
    "1", "12", "31", "29", "02", "2", "00", "0", "60", "59", "24", "2026", "2024", "1900", "99", "69", "68", "123456",
    "1234567", "999999999", ".", ":", "-", "/", " ", "  ", "T", "AM", "pm", "Pm", "Mar", "MARCH", "may", "Mon",
    "sunday",    "+02", "-0530", "+02:30", "+02:30:15", "Z", "x", "y", "%", ",", "\t", "é",
]  # fmt: skip


def written(rng: random.Random, form: str) -> str:
    """A text that often fits a format."""
    codes = {
        "Y": ["2026", "2024", "26", "0"], "y": ["26", "69", "7"], "m": ["2", "02", "11", "13"], "d": ["1", "29", "31"],
        "H": ["0", "09", "12", "23", "24"], "I": ["1", "12", "13", "0"], "M": ["5", "59", "60"], "S": ["5", "59"],
        "f": ["5", "123456", "1234567"], "g": ["5", "999"], "n": ["5", "999999999", "123456499", "1234567891"],
        "p": ["AM", "pm"], "a": ["mon", "SUN"], "A": ["Monday", "sunday"], "b": ["Feb", "dec"],
        "B": ["February", "may"],
        "z": ["+02", "-0530", "+02:30", "+023015", "+02:30:15", "+2", "Z"], "T": ["10:11:12", "1:2:3"], "%": ["%"],
    }  # fmt: skip
    text, at = "", 0
    while at < len(form):
        if form[at] == "%":
            at += 2 if form[at + 1] == "-" else 1
            text += rng.choice(codes[form[at]])
        else:
            text += form[at] * rng.choice([1, 1, 1, 2]) if form[at] == " " else form[at]
        at += 1
    return text


def test_as_duckdb() -> None:
    rng = random.Random(5)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    read = 0
    for form in FORMATS:
        texts = [written(rng, form) for _ in range(150)]
        texts += [text.replace(rng.choice("0123456789. "), rng.choice(PIECES), 1) for text in texts]
        texts += ["".join(rng.choices(PIECES, k=rng.randint(0, 6))) for _ in range(50)]
        texts += [f"  {text} " for text in texts[:20]]
        array = pa.array([None, *texts], t.STRING)
        data = pa.table({"x": array})
        theirs = connection.execute(f"SELECT epoch_us(TRY(strptime(x, '{form}'))) FROM data").fetchall()
        errors = ErrorCount()
        found = evaluate(call("strptime", [TEXT, Literal(form, t.STRING)]), {TEXT: array}, len(array), errors)
        ours = found.cast(pa.int64()).to_pylist()
        wrong = [(x, a, b) for x, a, (b,) in zip(array.to_pylist(), ours, theirs, strict=True) if a != b]
        assert not wrong, (form, data.num_rows, wrong[:5])
        assert errors.count == ours.count(None) - 1
        read += len(ours) - ours.count(None)
    assert read > 1000


@pytest.mark.parametrize("form", ["%", "%Q", "%d %d", "%-p", "", "%H %I", "%b %m", "%Z"])
def test_a_format_that_means_nothing_is_refused(form: str) -> None:
    with pytest.raises(TypeMismatch, match="strptime"):
        call("strptime", [TEXT, Literal(form, t.STRING)])
