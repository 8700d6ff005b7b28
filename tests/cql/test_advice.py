"""What a refusal suggests gives the rows that the refused query has in DuckDB; where no query does, it says so."""

from __future__ import annotations

import datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.cql.script import parse
from eddyline.errors import ScriptError

_START = datetime.datetime(2026, 1, 1)
_TEXTS = ["ab", "abc", None, "b", "xaby", "ab", "AB"]
A = pa.record_batch(
    {
        "ts": pa.array([_START + datetime.timedelta(seconds=n) for n in range(7)], pa.timestamp("us")),
        "k": pa.array([1, 1, 2, 2, 3, None, 4], pa.int64()),
        "x": pa.array([1.5, None, 2.0, -4.0, 7.0, 2.0, None]),
        "name": pa.array(_TEXTS),
    }
)
B = A.rename_columns(["at", "k", "y", "text"]).slice(1, 4)
NONE = "no other query gives the same"

ADVICE = [
    ("SELECT a.x FROM a LEFT JOIN b ON a.k = b.k", NONE, None),
    ("SELECT a.x FROM a FULL JOIN b ON a.k = b.k", NONE, None),
    ("SELECT a.x FROM a SEMI JOIN b ON a.k = b.k", NONE, None),
    ("SELECT a.x FROM a ANTI JOIN b ON a.k = b.k", NONE, None),
    ("SELECT a.x FROM a ASOF JOIN b ON a.k = b.k AND a.ts >= b.at", NONE, None),
    ("SELECT a.x FROM a NATURAL JOIN b", "an equality for each common column", "SELECT a.x FROM a JOIN b ON a.k = b.k"),
    ("SELECT a.x FROM a JOIN b USING (k)", "write the equality", "SELECT a.x FROM a JOIN b ON a.k = b.k"),
    ("SELECT x FROM a WHERE k NOT IN (SELECT k FROM b)", NONE, None),
    ("SELECT x FROM a WHERE k IN (SELECT k FROM b)", NONE, None),
    ("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b)", NONE, None),
    ("SELECT x FROM a WHERE x > (SELECT MAX(y) FROM b)", NONE, None),
    ("SELECT x FROM (SELECT x FROM a) AS i", "a script of its own", "SELECT x FROM a"),
    ("SELECT DISTINCT k FROM a", "GROUP BY over the selected columns", "SELECT k FROM a GROUP BY k"),
    ("SELECT DISTINCT ON (k) k, x FROM a", NONE, None),
    ("SELECT k FROM a LIMIT 2", NONE, None),
    ("SELECT k FROM a OFFSET 2", NONE, None),
    ("SELECT k FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) = 1", NONE, None),
    ("SELECT SUM(x) OVER (PARTITION BY k) FROM a", NONE, None),
    ("SELECT SUM(x) OVER w FROM a WINDOW w AS (PARTITION BY k)", NONE, None),
    ("SELECT k FROM a UNION SELECT k FROM b", NONE, None),
    ("SELECT k FROM a UNION ALL SELECT k FROM b", "one script per SELECT, with sinks of one folder", None),
    ("SELECT k FROM a INTERSECT SELECT k FROM b", NONE, None),
    ("SELECT k FROM a EXCEPT SELECT k FROM b", NONE, None),
    ("SELECT SUM(DISTINCT x) AS s FROM a", NONE, None),
    ("SELECT first(x) AS s FROM a", NONE, None),
    ("SELECT arg_max(k, x) AS s FROM a", NONE, None),
    (
        "SELECT SUM(x) FILTER (WHERE x > 0) AS s FROM a",
        "SUM(CASE WHEN x > 0 THEN y END)",
        "SELECT SUM(CASE WHEN x > 0 THEN x END) AS s FROM a",
    ),
    (
        "SELECT count_if(x > 0) AS n FROM a",
        "COUNT(CASE WHEN x > 0 THEN 1 END)",
        "SELECT COUNT(CASE WHEN x > 0 THEN 1 END) AS n FROM a",
    ),
    ("SELECT k, bool_and(x > 0) AS s FROM a GROUP BY k", "MIN(x > 0)", "SELECT k, MIN(x > 0) AS s FROM a GROUP BY k"),
    ("SELECT k, bool_or(x > 0) AS s FROM a GROUP BY k", "MAX(x > 0)", "SELECT k, MAX(x > 0) AS s FROM a GROUP BY k"),
    *(
        (
            f"SELECT k, {name}(x) AS s FROM a GROUP BY k",
            advice,
            f"SELECT k, {advice} AS s FROM a GROUP BY k",
        )
        for name, advice in (
            (
                "stddev_pop",
                "CASE WHEN COUNT(x) = 1 THEN 0 ELSE STDDEV_SAMP(x) * sqrt((COUNT(x) - 1) / NULLIF(COUNT(x), 0)) END",
            ),
            ("var_pop", "CASE WHEN COUNT(x) = 1 THEN 0 ELSE VAR_SAMP(x) * (COUNT(x) - 1) / NULLIF(COUNT(x), 0) END"),
        )
    ),
    (
        "SELECT x FROM a WHERE name SIMILAR TO 'a(b|c)*'",
        "regexp_matches(x, '^(pattern)$')",
        "SELECT x FROM a WHERE regexp_matches(name, '^(a(b|c)*)$')",
    ),
    (
        "SELECT x FROM a WHERE name ~ 'ab|b'",
        "regexp_matches(x, 'pattern')",
        "SELECT x FROM a WHERE regexp_matches(name, 'ab|b')",
    ),
    ("SELECT x FROM a WHERE name GLOB 'a*'", "with % for * and _ for ?", "SELECT x FROM a WHERE name LIKE 'a%'"),
    (
        "SELECT percentile_cont(0.75) WITHIN GROUP (ORDER BY x DESC) AS p FROM a",
        "the share from the other end",
        "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x) AS p FROM a",
    ),
    ("SELECT percentile_disc(0.75) WITHIN GROUP (ORDER BY x DESC) AS p FROM a", NONE, None),
]


def _run(query: str) -> list[tuple[Any, ...]]:
    streams = {"a": el.stream([A], time="ts"), "b": el.stream([B], time="at")}
    used = {name: stream for name, stream in streams.items() if f" {name}" in f" {query.lower()}".replace(",", " ")}
    run = el.query(query, streams=used).start()
    assert run.wait(60).expression_errors == 0  # type: ignore[union-attr]
    return [tuple(row.values()) for row in run.to_arrow().to_pylist()]


def _sorted(rows: list[tuple[Any, ...]]) -> list[Any]:
    return sorted(([round(v, 9) if isinstance(v, float) else v for v in row] for row in rows), key=repr)


@pytest.mark.parametrize(("refused", "sentence", "suggested"), ADVICE, ids=[refused for refused, _, _ in ADVICE])
def test_advice(refused: str, sentence: str, suggested: str | None) -> None:
    with pytest.raises(ScriptError) as error:
        _run(refused)
    assert sentence in str(error.value)
    if suggested is None:
        return
    with duckdb.connect() as database:
        database.register("a", pa.Table.from_batches([A]))
        database.register("b", pa.Table.from_batches([B]))
        expected = database.sql(refused).fetchall()
    assert _sorted(_run(suggested)) == _sorted(expected)


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("at TIMESTAMP(3)", "TIMESTAMP takes no number of digits, it has microseconds; write TIMESTAMP"),
        ("WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", "as in TIMESTAMP BY ts LATENESS 5 SECONDS"),
    ],
)
def test_declarations_of_other_systems(column: str, sentence: str) -> None:
    script = "CREATE STREAM s (ts TIMESTAMP, {}) USING json TIMESTAMP BY ts{}; SELECT ts FROM s"
    with pytest.raises(ScriptError, match=sentence.replace("(", r"\(")):
        parse(script.format(column, ""))
    parse(script.format("at TIMESTAMP", " LATENESS 5 SECONDS"))
