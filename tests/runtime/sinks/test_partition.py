"""PARTITION BY: rows in folders `column=value`, exactly once, as other readers expect them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import ScriptError, SettingError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.files import FileOptions
from eddyline.runtime.sinks.partition import Partition
from eddyline.runtime.sinks.parts import PartWriter
from eddyline.settings import from_mapping
from tests.conftest import Ran

TEXTS = ["de", "fr", None, "a/b=c: 100 %", "de", "", "ü", "a\0b"]
SCRIPT = """
CREATE STREAM s USING parquet OPTIONS (path 's') TIMESTAMP BY ts;
CREATE SINK out USING {} OPTIONS (path 'out', rows_per_file 2) PARTITION BY (Country, n);
INSERT INTO out SELECT country, k, n FROM s;
"""


@pytest.fixture
def rows(in_tmp: Path) -> pa.Table:
    count = len(TEXTS) * 5
    times = pa.array([datetime(2026, 1, 1, 0, 0, i) for i in range(count)], pa.timestamp("us"))
    numbers = pa.array([i % 2 for i in range(count)], pa.int32())
    made = pa.table({"ts": times, "country": TEXTS * 5, "n": numbers, "k": list(range(count))})
    Path("s").mkdir()
    pq.write_table(made, "s/0.parquet")
    return made


def _checkpointed(text: str) -> None:
    for batches in (2, None):
        runner = LocalRunner(prepare(text, checkpoint="ck"), from_mapping({"batch_rows": 7}), "ck")
        runner.run(stop=lambda runner=runner, batches=batches: runner.reporter.progress().batches == batches)  # type: ignore[misc]


def _expected(rows: pa.Table) -> list[tuple[Any, ...]]:
    columns = [rows[name].to_pylist() for name in ("country", "k", "n")]
    return sorted(((c or None, k, n) for c, k, n in zip(*columns, strict=True)), key=repr)


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("durable", [False, True])
def test_other_readers_find_the_rows(
    rows: pa.Table, run_script: Callable[..., Ran], format_: str, durable: bool
) -> None:
    text = SCRIPT.format(format_)
    _checkpointed(text) if durable else run_script(text)
    types = "hive_types={'country': VARCHAR, 'n': INTEGER}"
    read = f"read_{format_}('out/**/*.{format_}', hive_partitioning=true, {types})"
    found = duckdb.sql(f"SELECT country, k, n FROM {read}").fetchall()
    assert sorted(found, key=repr) == _expected(rows)
    assert {folder.name for folder in Path("out").iterdir()} == {
        "country=de", "country=fr", "country=__HIVE_DEFAULT_PARTITION__", "country=a%2Fb%3Dc%3A 100 %25", "country=ü",
        "country=a%00b",
    }  # fmt: skip
    files = [file for file in Path("out").rglob("part-*") if file.is_file()]
    assert {file.parent.name for file in files} == {"n=0", "n=1"} and not Path("out/_staged").exists()
    if format_ == "parquet":
        assert {tuple(pq.read_schema(file).names) for file in files} == {("k",)}
        assert max(pq.read_metadata(file).num_rows for file in files) == 2


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_few_files_are_open_at_a_time(rows: pa.Table, in_tmp: Path, format_: str) -> None:
    """The file that was begun first is completed when there are more folders; its folder gets another file later."""
    options = FileOptions(Path("out"), format_, "error", 1000, partition_by=("country", "n"))
    writer, whole = PartWriter(Path("out"), "part", options, rows.schema, most_open=2), rows.num_rows
    done = [file for at in range(0, whole, 8) for file in writer.write(rows.slice(at, 8))]
    assert len(done) > 10 and len(writer._open) == 2
    done += writer.close()
    assert len(set(done)) == len(done) == len([file for file in Path("out").rglob("*") if file.is_file()])
    read = f"read_{format_}('out/**/*.{format_}', hive_partitioning=true)"
    assert sorted(duckdb.sql(f"SELECT k FROM {read}").fetchall()) == [(k,) for k in range(whole)]


def test_modes_mean_the_folders_too(rows: pa.Table, run_script: Callable[..., Ran]) -> None:
    text = SCRIPT.format("parquet")
    run_script(text)
    with pytest.raises(ScriptError, match=r"out already holds results \(country="):
        run_script(text)
    run_script(text.replace("'out',", "'out', mode 'overwrite',").replace("FROM s", "FROM s WHERE country = 'fr'"))
    assert [folder.name for folder in Path("out").iterdir()] == ["country=fr"]
    assert pq.read_table("out").num_rows == 5


def test_no_rows_are_a_file_with_the_columns(rows: pa.Table, run_script: Callable[..., Ran]) -> None:
    run_script(SCRIPT.format("parquet").replace("FROM s", "FROM s WHERE k < 0"))
    found = duckdb.sql("SELECT * FROM read_parquet('out/**/*.parquet', hive_partitioning=true)")
    assert found.columns == ["k", "country", "n"] and found.fetchall() == []


def test_values_as_names_of_folders() -> None:
    columns = {
        "d": pa.array([date(2026, 1, 2), None]),
        "t": pa.array([datetime(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 600_000)], pa.timestamp("us")),
        "b": pa.array([True, False]),
        "s": pa.array(["x", "y"]).dictionary_encode(),
    }
    table = pa.table({**columns, "v": [1, 2]})
    split = dict(Partition(["d", "t", "b", "s"], table.schema).split(table))
    assert {folder: rows.to_pydict() for folder, rows in split.items()} == {
        "d=2026-01-02/t=2026-01-02 00%3A00%3A00/b=true/s=x": {"v": [1]},
        "d=__HIVE_DEFAULT_PARTITION__/t=2026-01-02 03%3A04%3A05.6/b=false/s=y": {"v": [2]},
    }


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("durable", [False, True])
def test_what_was_written_is_read_back(
    rows: pa.Table, run_script: Callable[..., Ran], format_: str, durable: bool
) -> None:
    text = SCRIPT.format(format_).replace("country, k, n", "ts, country, k, n")
    _checkpointed(text) if durable else run_script(text)
    for columns in ("", "(ts TIMESTAMP, n BIGINT, country VARCHAR, k BIGINT)"):
        back = f"CREATE STREAM b {columns} USING {format_} OPTIONS (path 'out') TIMESTAMP BY ts LATENESS 1 HOUR;"
        ran = run_script(back + "SELECT country, k, n FROM b")
        assert sorted((tuple(row.values()) for row in ran.rows), key=repr) == _expected(rows)
        assert [row["k"] for row in run_script(back + "SELECT k FROM b WHERE country = 'fr' AND n = 1").rows]


def _parquet(name: str, **columns: Any) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"ts": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")), **columns}), name)


READ = "CREATE STREAM d {} USING parquet OPTIONS (path '{}') TIMESTAMP BY ts;"


def test_types_of_folders(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    for day, number in (("2026-01-01", "1"), ("2026-01-02", "__HIVE_DEFAULT_PARTITION__")):
        _parquet(f"d/day={day}/number={number}/_x=a%3Ab/0.parquet", number=["of the file"])
    ran = run_script(READ.format("", "d") + "SELECT * FROM d WHERE day >= DATE '2026-01-01'")
    assert sorted((tuple(row.items())[1:] for row in ran.rows), key=repr) == [
        (("day", date(2026, 1, 1)), ("number", 1), ("_x", "a:b")),
        (("day", date(2026, 1, 2)), ("number", None), ("_x", "a:b")),
    ]
    declared = READ.format("(ts TIMESTAMP, Number VARCHAR)", "d")
    assert sorted(row["Number"] or "" for row in run_script(declared + "SELECT Number FROM d").rows) == ["", "1"]
    only = READ.format("", "d/day=2026-01-01") + "SELECT * FROM d"
    assert [list(row) for row in run_script(only).rows] == [["ts", "number", "_x"]]
    by_glob = READ.format("", "d/day=*/*/*/0.parquet") + "SELECT day FROM d"
    assert sorted(row["day"].day for row in run_script(by_glob).rows) == [1, 2]


_JOIN = "CREATE SINK dead USING print; SELECT d.k FROM d, t WHERE d.number = t.number"


def test_a_folder_whose_value_cannot_be_read(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    for number in ("1", "one"):
        _parquet(f"d/number={number}/0.parquet", k=[7])
    source = READ.format("(ts TIMESTAMP, number BIGINT, k BIGINT)", "d").replace("BY ts", "BY ts DEAD INTO dead")
    dead = "CREATE SINK dead USING print OPTIONS (format json);"
    ran = run_script(dead + source + "SELECT number FROM d")
    assert [row["number"] for row in ran.rows] == [1] and ran.summary.rows_dead == 1 and ran.summary.rows_in == 2
    assert '"number":"one","k":"7","reason":"column number: \'one\' is not a value of type BIGINT"' in ran.printed
    assert run_script(dead + source + "SELECT k FROM d").summary.rows_dead == 0
    with pytest.raises(ScriptError, match="all declared columns are folders of d; declare a column of the files, too"):
        run_script("CREATE TABLE t (number BIGINT) USING parquet OPTIONS (path 'd');" + source + _JOIN)


@pytest.mark.parametrize(
    ("clause", "answer"),
    [
        ("PARTITION BY (cuntry)", "PARTITION BY cuntry: there is no such column; did you mean 'country'"),
        ("PARTITION BY (country, k, n)", "PARTITION BY names all columns; leave one for the files"),
        ("PARTITION BY (f)", "PARTITION BY f: a column of type DOUBLE cannot name folders; a whole number"),
        ("PARTITION BY (country, Country)", "column 'Country' is listed twice"),
        ("PARTITION BY country", r"expected '\(' as in PARTITION BY \(country, day\), but found 'country'"),
        ("PARTITION BY (country) PARTITION BY (n)", "expected OPTIONS, PARTITION BY or ';' to end the statement"),
    ],
)
def test_what_is_refused(rows: pa.Table, run_script: Callable[..., Ran], clause: str, answer: str) -> None:
    text = SCRIPT.format("parquet").replace("PARTITION BY (Country, n)", clause)
    text = text.replace("country, k, n FROM", "country, k, k * 0.5::DOUBLE AS f FROM") if "(f)" in clause else text
    with pytest.raises(ScriptError, match=answer):
        run_script(text)
    assert not Path("out").exists()


@pytest.mark.parametrize("name", ["", ".x", "_x"])
def test_a_column_whose_folders_readers_would_skip(name: str) -> None:
    with pytest.raises(SettingError, match=r"readers skip folders whose name begins .* another name with AS"):
        Partition([name], pa.schema([(name, pa.string()), ("v", pa.int64())]))


def test_print_has_no_folders(rows: pa.Table, run_script: Callable[..., Ran]) -> None:
    with pytest.raises(ScriptError, match="print writes no folders; leave PARTITION BY out"):
        run_script(SCRIPT.format("print").replace(" OPTIONS (path 'out', rows_per_file 2)", ""))
