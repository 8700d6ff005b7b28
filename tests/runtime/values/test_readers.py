"""The same values through every reader: each costs at most its own row, with its reason, and never the job."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.errors import JobError

DAY = dt.datetime(2026, 1, 1)


def run(script: str, **streams: Any) -> tuple[list[dict[str, Any]], int, str]:
    """The rows, the number of dead ones, and the reason of the first."""
    started = el.query(script, streams=streams).start()
    rows, summary = started.to_arrow().to_pylist(), started.wait()
    assert summary is not None
    return rows, summary.rows_dead, next(iter(summary.streams.values()))["first_dead"]


@pytest.fixture
def of_json(tmp_path: Path) -> Callable[..., tuple[list[dict[str, Any]], int, str]]:
    def read(columns: str, *texts: str) -> tuple[list[dict[str, Any]], int, str]:
        rows = (f'{{"ts": "2026-01-01", "k": {number}, {text}}}' for number, text in enumerate(texts))
        (tmp_path / "a.json").write_text("\n".join(rows))
        source = f"CREATE STREAM t (ts TIMESTAMP, k BIGINT, {columns}) USING json OPTIONS (path '{tmp_path}')"
        return run(f"{source} TIMESTAMP BY ts; SELECT * FROM t")

    return read


@pytest.mark.parametrize(
    ("type_", "bad", "good"),
    [
        ("BIGINT[]", "[1.5, -2.9]", "[1]"),
        ("STRUCT(a BIGINT)", '{"a": 1.9}', '{"a": 2}'),
        ("MAP(VARCHAR, BIGINT)", '{"x": 2.7}', '{"x": 3}'),
        ("DATE[]", "[1.5]", '["2026-01-01"]'),
        ("VARCHAR", '"\\ud800"', '"good"'),
        ("VARCHAR[]", '"abc"', '["abc"]'),
    ],
)
def test_a_bad_value_of_json_costs_its_own_row(type_: str, bad: str, good: str, of_json: Any) -> None:
    rows, dead, reason = of_json(f"v {type_}", f'"v": {good}', f'"v": {bad}', f'"v": {good}', '"v": null')
    assert [row["k"] for row in rows] == [0, 2, 3] and dead == 1
    assert reason.startswith("column v: '") and f"is not a value of type {type_}" in reason


def test_a_bad_value_that_nobody_names_costs_nothing(of_json: Any, tmp_path: Path) -> None:
    of_json("v VARCHAR", '"v": "\\ud800"')
    source = f"CREATE STREAM t (ts TIMESTAMP, k BIGINT, v VARCHAR) USING json OPTIONS (path '{tmp_path}')"
    assert run(f"{source} TIMESTAMP BY ts; SELECT k FROM t")[:2] == ([{"k": 0}], 0)


def test_json_in_a_column_of_text_keeps_its_spelling(of_json: Any) -> None:
    text = '{"a": 1.50,"a":2, "b": [1, "x", 12345678901234567890, {"é": "\\u00e9"}]}'
    rows, dead, _ = of_json("v VARCHAR", f'"v": {text}', '"v": 1.50', '"v": false', '"v": "x"')
    assert [row["v"] for row in rows] == [text, "1.50", "false", "x"] and not dead


def test_a_bad_element_of_parquet_costs_its_own_row(tmp_path: Path) -> None:
    lists = [[1.0], [1.5], None, [2.0, None]]
    pq.write_table(pa.table({"ts": [DAY] * 4, "s": lists}), tmp_path / "a.parquet")
    source = f"CREATE STREAM t (ts TIMESTAMP, s BIGINT[]) USING parquet OPTIONS (path '{tmp_path}')"
    rows, dead, reason = run(f"{source} TIMESTAMP BY ts; SELECT s FROM t")
    assert [row["s"] for row in rows] == [[1], None, [2, None]] and dead == 1
    assert reason == "column s: '[1.5]' is not a value of type BIGINT[]"


@pytest.mark.parametrize("columns", ["", "(ts TIMESTAMP, k BIGINT)", "(ts TIMESTAMP_NS, k BIGINT)"])
def test_nanoseconds_are_rounded_towards_the_past(columns: str, tmp_path: Path) -> None:
    times = pa.array([1_700_000_000_000_000_001, -1], pa.timestamp("ns"))
    pq.write_table(pa.table({"ts": times, "k": [1, 2]}), tmp_path / "a.parquet")
    source = f"CREATE STREAM t {columns} USING parquet OPTIONS (path '{tmp_path}') TIMESTAMP BY ts LATENESS 30000 DAYS"
    rows, dead, _ = run(f"{source}; SELECT k, CAST(ts AS VARCHAR) AS at FROM t")
    assert {row["at"] for row in rows} == {"2023-11-14 22:13:20", "1969-12-31 23:59:59.999999"} and not dead


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1, 2], None, [3]], pa.list_view(pa.int64())),
        pa.array([[1, 2], None, [3]], pa.large_list_view(pa.int64())),
        pa.array([{"a": ["x"]}, None, {"a": None}], pa.struct({"a": pa.list_view(pa.string_view())})),
        pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", None], pa.string_view())),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array([DAY, None])),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array([[1], [2]])),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1], pa.int8()), pa.array(["x", "y"], pa.string_view())),
        pa.array([True, None, False]).dictionary_encode(),
    ],
    ids=lambda values: str(values.type),
)
def test_layouts_of_arrow(values: pa.Array) -> None:
    table = pa.table({"ts": [DAY] * 3, "x": values})
    for given in (table, table.to_batches()):
        rows, _, _ = run("SELECT x FROM s", s=el.stream(given, time="ts"))
        assert [row["x"] for row in rows] == values.to_pylist()


def test_a_dictionary_of_times_is_a_time() -> None:
    table = pa.table({"ts": pa.array([DAY, DAY], pa.timestamp("us")).dictionary_encode(), "x": [1, 2]})
    assert [row["x"] for row in run("SELECT x FROM s", s=el.stream(table, time="ts"))[0]] == [1, 2]


def test_a_union_inside_a_struct_is_refused_before_the_first_row() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    table = pa.table({"ts": [DAY], "x": pa.StructArray.from_arrays([union], ["u"])})
    with pytest.raises(el.errors.SettingError, match=r"column x has type .*, which a query cannot read"):
        el.query("SELECT ts FROM s", streams={"s": el.stream(table, time="ts")})


def test_an_empty_parquet_file_is_a_damaged_one(tmp_path: Path) -> None:
    """A parquet file without rows has a footer; empty files of text have no rows."""
    pq.write_table(pa.table({"ts": [DAY], "k": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").touch()
    source = "CREATE STREAM t USING parquet OPTIONS (path '{}'{}) TIMESTAMP BY ts; SELECT k FROM t"
    with pytest.raises(JobError, match=r"b\.parquet cannot be read as parquet"):
        run(source.format(tmp_path, ""))
    rows, dead, reason = run(source.format(tmp_path, ", corrupt 'dead'"))
    assert (rows, dead) == ([{"k": 1}], 1) and "b.parquet" in reason


def test_a_nested_type_that_text_cannot_hold_is_refused(of_json: Any) -> None:
    with pytest.raises(el.errors.ScriptError, match="column v: a value of type TIME cannot be read from json"):
        of_json("v STRUCT(a TIME[])", '"v": null')


def test_far_dates_in_lists_reach_json(tmp_path: Path) -> None:
    far = pa.array([[2**31 - 1, -719163, None, 0]], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))
    table = pa.table({"ts": [DAY], "d": far})
    script = f"CREATE SINK o USING json OPTIONS (path '{tmp_path}/o'); INSERT INTO o SELECT d FROM s"
    el.query(script, streams={"s": el.stream(table, time="ts")}).start().wait()
    (file,) = (tmp_path / "o").glob("part-*")
    assert json.loads(file.read_text()) == {"d": ["5881580-07-11", "0001-12-31 (BC)", None, "1970-01-01"]}


def test_far_times_reach_csv(tmp_path: Path) -> None:
    times = pa.array([0, 3_110_400_000_000_000], pa.timestamp("ms"))
    table = pa.table({"ts": [DAY] * 2, "k": [1, 2], "t": times})
    script = f"CREATE SINK o USING csv OPTIONS (path '{tmp_path}/o'); INSERT INTO o SELECT k, t FROM s"
    el.query(script, streams={"s": el.stream(table, time="ts")}).start().wait()
    (file,) = (tmp_path / "o").glob("part-*")
    back = duckdb.sql(
        f"SELECT CAST(t AS VARCHAR), k FROM read_csv('{file}', all_varchar=true) ORDER BY k"
    ).to_arrow_table()
    assert back.column(0).to_pylist() == ["1970-01-01 00:00:00.000", "100534-08-27 00:00:00.000"]
