"""Whatever the text, the answer is a query or a ScriptError, never another exception."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.cql.tokens import tokenize
from eddyline.errors import ScriptError
from tests.support.properties import examples
from tests.support.valid_scripts import DECLARED, QUERIES

SCRIPTS = [query + "\n;" + DECLARED for query in QUERIES]
PIECES = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "DISTINCT",
    "JOIN",
    "LEFT",
    "ON",
    "USING",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "CAST",
    "INTERVAL",
    "CREATE",
    "STREAM",
    "TABLE",
    "SINK",
    "INSERT",
    "INTO",
    "OPTIONS",
    "TIMESTAMP",
    "LATENESS",
    "SCAN",
    "INDEX",
    "RANGE",
    "ROWS",
    "SLIDE",
    "UNBOUNDED",
    "MINUTES",
    "EXISTS",
    "UNION",
    "WITH",
    "OVER",
    "FILTER",
    "VALUES",
    "ALL",
    "ANY",
    "LATERAL",
    "UNNEST",
    "PIVOT",
    "EXTRACT",
    "COUNT",
    "SUM",
    "window_end",
    "id",
    "ts",
    "amount",
    "tags",
    "o",
    "p",
    "orders",
    "payments",
    "carriers",
    "people",
    "out",
    "*",
    "+",
    "-",
    "/",
    "//",
    "%",
    "||",
    "=",
    "<>",
    "<",
    "<=",
    "::",
    ".",
    "..",
    ",",
    ";",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "'",
    '"',
    "`x`",
    "$$",
    "$1",
    "?",
    ":",
    ":=",
    "->",
    "@",
    "#",
    "~",
    "!",
    "^",
    "&",
    "|",
    "|>",
    "--",
    "/*",
    "*/",
    "0",
    "1",
    "1.5",
    "1e400",
    "99999999999999999999999999999999999999999999",
    "0x1f",
    "'a'",
    '"id"',
    "\x00",
    "é",
    "🙂",
]


def check(text: str) -> None:
    try:
        query = bind(parse(text), lambda declaration: pa.schema(declaration.columns or []))
    except ScriptError as error:
        assert error.line >= 1 and error.column >= 1 and error.message
        assert "\n" not in str(error) and len(error.pretty().split("\n")) == 3
        assert error.column <= len(error.source_line) + 1
    else:
        assert isinstance(query, BoundQuery) and query.schema is not None and hash(query.outputs) is not None


@examples(300)
@given(st.text())
def test_random_text(text: str) -> None:
    check(text)
    check("SELECT " + text + " FROM orders;" + DECLARED)


@examples(200)
@given(st.binary())
def test_random_bytes(data: bytes) -> None:
    check(data.decode("latin-1"))
    check(data.decode(errors="replace"))


@examples(300)
@given(st.lists(st.sampled_from(PIECES), max_size=15), st.sampled_from(["SELECT id FROM orders ", "SELECT ", ""]))
def test_random_words(words: list[str], start: str) -> None:
    check(start + " ".join(words) + " FROM orders;" + DECLARED)


@examples(400)
@given(st.sampled_from(SCRIPTS), st.data())
def test_mutated_tokens(script: str, data: st.DataObject) -> None:
    spans = [(token.start, token.end + 1) for token in tokenize(script)]
    edits = data.draw(
        st.lists(st.tuples(st.integers(0, len(spans) - 1), st.sampled_from(["drop", "twice", *PIECES])), max_size=3)
    )
    for index, edit in sorted(edits, reverse=True):
        start, end = spans[index]
        middle = "" if edit == "drop" else script[start:end] + " " + script[start:end] if edit == "twice" else edit
        script = script[:start] + middle + script[end:]
    check(script)


@examples(400)
@given(st.sampled_from(SCRIPTS), st.data())
def test_mutated_characters(script: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(script) - 1))
    length = data.draw(st.integers(0, 3))
    check(script[:at] + data.draw(st.text(max_size=2)) + script[at + length :])
    check(script[:at])


DEEP = 3000


@pytest.mark.parametrize(
    "expression",
    [
        "(" * DEEP + "id" + ")" * DEEP,
        "-" * DEEP + "id",
        "- " * DEEP + "id",
        "NOT " * DEEP + "TRUE",
        "+".join(["id"] * DEEP),
        " || ".join(["customer"] * DEEP),
        "abs(" * DEEP + "id" + ")" * DEEP,
        "CASE WHEN " * DEEP + "TRUE" + " THEN 1 END" * DEEP,
        "[" * DEEP + "]" * DEEP,
        "id" + "::BIGINT" * DEEP,
        "id" + "[1]" * DEEP,
        "a." * DEEP + "id",
        "INTERVAL " * DEEP + "'5' SECOND",
        "CAST(id AS " + "STRUCT(a " * DEEP + "INT" + ")" * DEEP + ")",
        "CAST(id AS INT" + "[]" * DEEP + ")",
        "1" * 10_000,
        "1." + "1" * 10_000,
        "1e" + "1" * 10_000,
        "x" * 100_000,
        "'" + "x" * 100_000 + "'",
        "id BETWEEN " * DEEP + "1",
        "\x00",
        "'\x00'",
        '""',
        '"\n"',
        "'\ud800'",
    ],
)
def test_deep_and_huge(expression: str) -> None:
    check(f"SELECT {expression} FROM orders;{DECLARED}")
    check(f"SELECT id FROM orders WHERE {expression} > {expression};{DECLARED}")
    check(f"SELECT COUNT(*) FROM orders GROUP BY {expression};{DECLARED}")


def test_long_chains_of_conditions_are_no_problem() -> None:
    chain = " OR ".join(f"id = {n}" for n in range(2000))
    query = bind(
        parse(f"SELECT id FROM orders WHERE ({chain}) AND {' AND '.join(['id > 0'] * 2000)};{DECLARED}"),
        lambda declaration: pa.schema(declaration.columns or []),
    )
    assert len(query.predicates) == 2001


@pytest.mark.parametrize("number", ["9" * 400, "1e999", "-5", "0", "5.5.5", "5e5", "１"])
def test_odd_numbers_in_windows(number: str) -> None:
    for window in (
        f"[RANGE {number} MINUTES]",
        f"[ROWS {number}]",
        f"[UNBOUNDED SLIDE {number} SECONDS]",
        f"[RANGE '{number}' DAY]",
    ):
        check(f"SELECT COUNT(*) FROM orders {window};{DECLARED}")
