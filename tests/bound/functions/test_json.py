"""JSON against DuckDB: a grid of texts and paths, random values, and texts that are broken."""

from __future__ import annotations

import json
import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eddyline as el
from eddyline.bound import types as t
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Literal, SourceColumn
from eddyline.bound.functions import TypeMismatch, call
from tests.support.properties import examples

TEXTS = [
    '{"a": 1, "b": {"c": "x\\"y", "d": [1,2.50,null,"z"]}, "e f": 1e3, "n": null, "t": true}', '[1,2,{"a":5}]', '"s"',
    "12", "nope", "",
    '{"a": 1} x', '{"a":1,"a":2,"b":{"c":1,"c":2}}', "null", '{"a": 0.10}', '{"a":"\\u00e9\\n\\u001f"}',
    ' {"a" : [1 , 2]} ', '{"a.b":1,"":2}', "-0", "1e400", "123456789012345678901234567890",
    "{'a':1}",
    '{"a":"/\\/"}',
    '{"a":"\\ud83d\\ude00"}', '{"a":"\\ud800"}', '{"a":-0.0}', '{"a":1E5}', "01", '\ufeff{"a":1}', '{"a":"\t"}',
    '{"a":"\x7f\u2028é\\\\"}', '{"a":[1e-6,1e-7,1.5e300,1e20,1e21,5e-324,0.1e1,-1.25]}', '{"a":{"a":[[],{}]}}',
    "\t[ ]\n",
    '{"a":18446744073709551615}', '{"a":123456789.123456789}', "[", '{"a"}', '{"a":1,,"b":2}', "tru", "[1 2]", None,
]  # fmt: skip
PATHS: list[object] = [
    "$", "$.a", "a", "$.b.c", "$.b.d[0]", "$.b.d[#-1]", "$.b.d[-2]", '$."e f"', "e f", "$.n", "$[0]", "$[2].a",
    "", 0, -1, 9, '$."a.b"', "a.b", "$.a[1]", "$.a.a[0]", "n", "$.t", None,
]  # fmt: skip
DB = duckdb.connect()
COLUMN = SourceColumn(0, "a", t.STRING)


def ours(name: str, texts: list[str | None], *paths: object) -> tuple[list[Any], int]:
    errors = ErrorCount()
    literals = [Literal(p, t.NULL if p is None else t.INT32 if isinstance(p, int) else t.STRING) for p in paths]
    values = evaluate(call(name, [COLUMN, *literals]), {COLUMN: pa.array(texts, t.STRING)}, len(texts), errors)
    return values.to_pylist(), errors.count


def theirs(name: str, texts: list[str | None], *paths: object) -> list[Any]:
    DB.register("given", pa.table({"a": pa.array(texts, t.STRING), "n": range(len(texts))}))
    written = ["a", *("NULL" if p is None else repr(p) if isinstance(p, int) else f"'{p}'" for p in paths)]
    rows = DB.execute(f"SELECT TRY({name}({', '.join(written)})) FROM given ORDER BY n").fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("name", ["json_extract", "json_extract_string", "json_array_length"])
def test_paths_as_duckdb(name: str) -> None:
    for path in PATHS:
        if name == "json_array_length" and isinstance(path, int):
            continue  # DuckDB has no such function
        assert ours(name, TEXTS, path)[0] == theirs(name, TEXTS, path), path


def test_without_a_path_as_duckdb() -> None:
    assert ours("json_valid", TEXTS) == (theirs("json_valid", TEXTS), 0)
    assert ours("json_array_length", TEXTS)[0] == theirs("json_array_length", TEXTS)


def test_what_is_no_json_is_counted_and_a_missing_value_is_not() -> None:
    assert ours("json_extract_string", ['{"a": 1}', "{}", "no", None, "no"], "a") == (["1", None, None, None, None], 2)
    assert ours("json_extract_string", ["[1,]", "NaN", "[" * 100_000], "$") == ([None] * 3, 3)


@pytest.mark.parametrize("name", ["json_extract", "json_extract_string"])
def test_a_value_that_is_nested_too_deeply_is_counted(name: str) -> None:
    deep = "[" * 600 + "]" * 600  # it can be read, but not written
    assert ours("json_valid", [deep]) == ([True], 0)
    assert ours(name, [deep, "[1]", deep], "$") == ([None, "[1]", None], 2)


@pytest.mark.parametrize("path", ["$.a[*]", "$.*", "$..a", "$a", "/a", "$.a[", "$[#1]", "$."])
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(TypeMismatch, match="no path"):
        ours("json_extract", ["{}"], path)


def test_a_path_must_be_a_constant() -> None:
    with pytest.raises(TypeMismatch, match="constant"):
        call("json_extract", [COLUMN, COLUMN])


_WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab") | _WORDS, inner, max_size=4),
    max_leaves=12,
)
_LENIENT = re.compile(r",\s*[\]}]|nan|inf", re.IGNORECASE)
"""What DuckDB takes for JSON and we do not."""


@pytest.mark.long
@examples(200)
@given(st.lists(_VALUES, min_size=1, max_size=20), st.booleans())
def test_random_values_as_duckdb(values: list[Any], escaped: bool) -> None:
    texts: list[str | None] = [json.dumps(value, ensure_ascii=escaped) for value in values]
    for path in ("$", "$.a", "$[0]", "$.a.b", "$.b[#-1]"):
        for name in ("json_extract", "json_extract_string"):
            assert ours(name, texts, path)[0] == theirs(name, texts, path)


@examples(200)
@given(_VALUES, st.data())
def test_broken_texts_as_duckdb(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
    at = data.draw(st.integers(0, len(text)))
    piece = data.draw(st.sampled_from([*'{}[],:"0-.e\\ \n\t', "null", "\\u", "'", ""]))
    text = text[:at] + piece + text[at + data.draw(st.integers(0, 2)) :]
    if not _LENIENT.search(text):
        assert ours("json_valid", [text])[0] == theirs("json_valid", [text]), text
        assert ours("json_extract", [text], "$")[0] == theirs("json_extract", [text], "$"), text


def test_arrows() -> None:
    """a -> 'x' = 'y' compares the value: DuckDB reads it as a -> ('x' = 'y') and refuses it."""
    rows: list[dict[str, Any]] = []
    docs = ['{"k": "x", "l": [{"n": "5"}, 7.5]}', '{"k": "y", "l": []}', "no"]
    table = pa.table({"ts": pa.array([1, 2, 3], pa.timestamp("us")), "doc": docs})
    query = """
        SELECT doc->>'k' AS k, doc->'k' AS quoted, CAST(doc->'$.l'->0->>'n' AS INTEGER) + 1 AS n,
            CAST(doc->>'$.l[1]' AS DOUBLE) AS d FROM s WHERE doc->>'k' = 'x' OR json_array_length(doc, 'l') = 0
    """
    summary = (
        el.query(query, {"s": el.stream(table, time="ts")}).start(sink=lambda b: rows.extend(b.to_pylist())).wait()
    )
    assert rows == [
        {"k": "x", "quoted": '"x"', "n": 6, "d": 7.5},
        {"k": "y", "quoted": '"y"', "n": None, "d": None},
    ]
    assert summary is not None and summary.expression_errors == 2
