"""Scripts beyond the limits are refused in a sentence with a place; scripts up to them are planned and run."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlglot.tokenizer_core import Token

from eddyline.bound.model import BoundQuery
from eddyline.cli.main import main
from eddyline.cql import limits, refusals
from eddyline.cql.limits import DEPTH, ITEMS, LIMITS, NAME, PARTS, TEXT, Limit
from eddyline.errors import ScriptError
from eddyline.plan.explain import explain
from eddyline.plan.plan import Plan
from eddyline.protocol.attach import fingerprint
from eddyline.runtime.running.job import explain as bound

STREAM = "CREATE STREAM a (ts TIMESTAMP, k BIGINT, s VARCHAR) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;\n"


def refused(text: str) -> str:
    with pytest.raises(ScriptError) as caught:
        bound(STREAM + text)
    assert caught.value.line and len(caught.value.pretty()) < 500
    return caught.value.message


def nested(form: str, levels: int) -> str:
    before, _, after = form.partition("x")
    return before * levels + "k" + after * levels


NESTED = (
    "(x)", "- x", "NOT x", "abs(x)", "CAST(x AS BIGINT)", "[x]", "{'a': x}", "CASE WHEN x THEN 1 ELSE 2 END", "k + x",
    "x + k", "x::BIGINT", "x[1]", "x IS NULL", "x -> '$.a'", "k IN (x)", "INTERVAL x", "x COLLATE a", "coalesce(k, x)",
    "k = x", "(x AND s = 'b' AND s = 'c' OR s = 'd' OR s = 'e')", "f(y -> x)", "x.a",
)  # fmt: skip


@pytest.mark.parametrize("form", NESTED)
@pytest.mark.parametrize("levels", [DEPTH.most + 1, 3000])
def test_deep_expressions_are_refused(form: str, levels: int) -> None:
    """By their depth, or because there is no such expression; never by a RecursionError."""
    message = refused(f"SELECT {nested(form, levels)} AS x FROM a")
    assert message == DEPTH.sentence or levels < 3000 or "not supported" in message or "no" in message


@pytest.mark.parametrize("form", ["(x)", "abs(x)", "CASE WHEN k > 1 THEN x ELSE 2 END", "k + x", "x + k", "x || s"])
def test_the_deepest_expressions_are_planned_and_run(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = DEPTH.most - 4
    monkeypatch.chdir(tmp_path)
    text = f"{STREAM}SELECT {nested(form, levels)} AS x, count(*) FROM a GROUP BY {nested(form, levels)}"
    query = bound(text)
    assert query == bound(text) and hash(query.outputs) == hash(bound(text).outputs)
    assert explain(query) and Plan(query) and fingerprint(query)
    Path("q.sql").write_text(text)
    assert main(["run", "q.sql", "--engine", "local"]) == 0, capsys.readouterr().err


def test_many_conditions_at_every_level() -> None:
    """A chain of ORs in a chain of ANDs, and so on: each bracket is one level, however long the chains are."""
    text = "k = 0"
    for level in range(60):
        text = f"({text} {'AND' if level % 2 else 'OR'} {' AND '.join(f'k <> {n}' for n in range(20))})"
    assert isinstance(bound(f"{STREAM}SELECT k FROM a WHERE {text}"), BoundQuery)


def test_names_that_stand_for_expressions_again_and_again() -> None:
    names = ", ".join(f"x{n} + x{n} AS x{n + 1}" for n in range(60))
    assert refused(f"SELECT k AS x0, {names} FROM a") == PARTS.sentence


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("SELECT k, '" + "x" * (TEXT.most + 1) + "' AS x FROM a", TEXT),
        ('SELECT k AS "' + "x" * (NAME.most + 1) + '" FROM a', NAME),
        ("SELECT k AS " + "x" * (NAME.most + 1) + " FROM a", NAME),
        ("SELECT k FROM " + ", ".join(f"a AS x{n}" for n in range(ITEMS.most + 1)), ITEMS),
    ],
)
def test_other_limits(text: str, limit: Limit) -> None:
    assert refused(text) == limit.sentence


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cql.tokens.CHARACTERS", "SELECT k FROM a"),
        ("cql.tokens.TOKENS", "SELECT k FROM a"),
        ("cql.declarations.COLUMNS", f"CREATE TABLE w ({', '.join(f'c{n} INT' for n in range(5))}) USING csv"),
        ("bound.bind_select.COLUMNS", "SELECT k, k, k, k, k FROM a"),
        ("bound.bind_select.COLUMNS", "SELECT *, * FROM a"),
    ],
)
def test_smaller_limits(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that it takes long to exceed."""
    limit = Limit("a part", 4, "of these", "be brief")
    monkeypatch.setattr(f"eddyline.{name}", limit)
    assert refused(text) == limit.sentence


def test_the_limit_of_recursion_is_put_back() -> None:
    before = sys.getrecursionlimit()
    bound(f"{STREAM}SELECT {nested('abs(x)', 150)} AS x FROM a")
    assert sys.getrecursionlimit() == before
    threads = [threading.Thread(target=bound, args=(f"{STREAM}SELECT {nested('(x)', 150)} FROM a",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrecursionlimit() == before and limits._inside == 0


def test_a_long_line_is_cut_around_the_place() -> None:
    with pytest.raises(ScriptError) as caught:
        bound(STREAM + "SELECT " + "k, " * 50 + "\x1b[31m, " + "k, " * 50 + "k FROM a")
    _, line, caret = caught.value.pretty(60).split("\n")
    assert len(line) <= 60 and line[caret.index("^") :].startswith("[31m") and "\\u001b" in line
    assert line.startswith("  ...") and line.endswith("...")
    assert "..." not in ScriptError("wrong", 1, 3, "SELECT").pretty(60) and len(LIMITS) == 8


def test_long_lists_are_planned_in_linear_time_and_cut_in_the_plan(
    in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a step that is quadratic in the number of tokens this took minutes."""
    values = ", ".join(map(str, range(30_000)))
    Path("in.sql").write_text(f"{STREAM}SELECT k FROM a WHERE k IN ({values});")
    assert main(["explain", "in.sql", "--engine", "local"]) == 0
    said = capsys.readouterr().out
    assert "filter a.k IN (0, 1, 2, " in said and " more characters ..." in said
    assert max(map(len, said.splitlines())) < 1100


def test_each_token_is_checked_with_the_two_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    check = refusals._wrong_token

    def counted(text: str, before: Sequence[Token], token: Token, after: Token | None) -> str:
        seen.append(len(before))
        return check(text, before, token, after)

    monkeypatch.setattr(refusals, "_wrong_token", counted)
    bound(STREAM + "SELECT k FROM a WHERE " + " OR ".join(f"k = {i}" for i in range(50)))
    assert len(seen) > 150 and max(seen) == 2
