"""Files that are not what the script says: another format, other files in the folder, no header."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.errors import EddylineError, ScriptError
from tests.conftest import Ran

Run = Callable[..., Ran]
COLUMNS = " (ts TIMESTAMP, x BIGINT)"


def script(format_: str, options: str = "path 'd'", columns: str = "") -> str:
    return f"CREATE STREAM s{columns} USING {format_} OPTIONS ({options}) TIMESTAMP BY ts; SELECT x FROM s"


def write(name: str) -> None:
    """A file of one row."""
    path = Path("d", name)
    path.parent.mkdir(exist_ok=True)
    if name.endswith("csv"):
        path.write_text("ts,x\n2026-01-01,1\n")
    elif name.endswith("json"):
        path.write_text('{"ts": "2026-01-01", "x": 1}\n')
    else:
        pq.write_table(pa.table({"ts": [datetime(2026, 1, 1)], "x": [1]}), path)


@pytest.mark.parametrize("columns", ["", COLUMNS])
@pytest.mark.parametrize(
    ("name", "format_", "said"),
    [
        ("a.csv", "parquet", "d/a.csv is not parquet; it looks like csv: write USING csv"),
        ("a.csv", "json", "d/a.csv: its first line is not a JSON object; it looks like csv: write USING csv"),
        ("a.parquet", "csv", "d/a.parquet is a parquet file: write USING parquet"),
        ("a.parquet", "json", "d/a.parquet is a parquet file: write USING parquet"),
        ("a.json", "parquet", "d/a.json is not parquet; it looks like json: write USING json"),
    ],
)
def test_another_format(in_tmp: Path, run_script: Run, name: str, format_: str, said: str, columns: str) -> None:
    write(name)
    text = script(format_, columns=columns)
    with pytest.raises(ScriptError) as refused:
        run_script(text)
    assert (refused.value.message, refused.value.column) == (said, text.index(format_) + 1)
    assert run_script(script(name.partition(".")[2], columns=columns)).rows == [{"x": 1}]


def test_lines_of_objects_are_csv_if_the_script_says_how(in_tmp: Path, run_script: Run) -> None:
    write("a.json")
    with pytest.raises(ScriptError, match=r"d/a.json is not csv; it looks like json: write USING json"):
        run_script(script("csv"))
    options = "path 'd', sep '|', quote '', header 'false'"
    for columns in ("", " (_c0 VARCHAR)"):
        text = script("csv", options, columns).replace("BY ts", "BY strptime(_c0[11:20], '%Y-%m-%d')")
        text = text.replace("_c0[11:20]", "substring(_c0, 9, 10)").replace("SELECT x", "SELECT _c0")
        assert run_script(text).rows == [{"_c0": '{"ts": "2026-01-01", "x": 1}'}]


def test_a_file_of_another_format_among_others(in_tmp: Path, run_script: Run) -> None:
    write("a.parquet")
    write("b.csv")
    with pytest.raises(ScriptError, match=r"^.*d/a.parquet is a parquet file: leave it out, as in path 'd/\*.csv'$"):
        run_script(script("csv"))
    assert run_script(script("csv", "path 'd/*.csv'")).rows == [{"x": 1}]
    assert run_script(script("csv", "path 'd', corrupt 'dead'", COLUMNS)).rows == [{"x": 1}]
    with pytest.raises(EddylineError, match=r"^d/b.csv cannot be read as parquet"):
        run_script(script("parquet"))


def test_rows_that_cannot_be_read_are_no_other_format(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text('ts,x\n{"ts": "2026-01-01", "x": 1}\n')
    ran = run_script(script("json", columns=COLUMNS))
    assert (ran.rows, ran.summary.rows_dead) == ([{"x": 1}], 1)


def test_the_file_that_gave_the_columns_is_named(in_tmp: Path, run_script: Run) -> None:
    write("b.csv")
    Path("d/README.txt").write_text("These are the rides.\nOf 2026.\n")
    with pytest.raises(ScriptError, match=r"there is \"These are the rides.\" \(from d/README.txt\)$"):
        run_script(script("csv"))
    assert run_script(script("csv", "path 'd/*.csv'")).rows == [{"x": 1}]


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_columns_come_from_the_first_file_with_a_row(in_tmp: Path, run_script: Run, format_: str) -> None:
    write(f"c.{format_}")
    Path(f"d/a.{format_}").write_text("\n")
    if format_ == "csv":
        Path("d/b.csv").write_text("ts,x\n")
    assert run_script(script(format_).replace("SELECT x", "SELECT x + 1 AS y")).rows == [{"y": 2}]


def test_a_header_is_enough_if_no_file_has_a_row(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("ts,x\n")
    text = script("csv").replace("BY ts", "BY CAST(ts AS TIMESTAMP)")
    assert run_script(text).rows == []


def test_no_header(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("2026-01-01,1,a\n2026-01-02,2,b\n")
    with pytest.raises(ScriptError, match=r"there is .*; if the first line is no header, set header 'false'$"):
        run_script(script("csv"))
    text = script("csv", "path 'd', header 'false'").replace("BY ts", "BY _c0").replace("SELECT x", "SELECT _c1")
    assert run_script(text).rows == [{"_c1": 1}, {"_c1": 2}]
    Path("d").write_text("at,x\n2026-01-01,1\n")
    with pytest.raises(ScriptError, match=r"there is at, x$"):
        run_script(script("csv"))
