"""Sinks: what is written can be read, files appear when they are complete, results are never mixed silently."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from eddyline.errors import ScriptError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.files import FileOptions, FileSink
from eddyline.runtime.sinks.json_lines import lines
from eddyline.runtime.sinks.print_rows import PrintSink
from tests.conftest import Ran

_BATCH = pa.record_batch(
    {
        "i": pa.array([1, None], pa.int32()),
        "f": [0.5, float("nan")],
        "s": ['say "hi"\n', "a\\b"],
        "b": [True, None],
        "d": pa.array([Decimal("1.50"), None]),
        "t": pa.array([datetime(2026, 1, 1, 1, 2, 3), None], pa.timestamp("us")),
        "day": [date(2026, 1, 1), None],
        "l": [[1, 2], None],
        "e": pa.array(["x", "y"]).dictionary_encode(),
    }
)


def _sink(path: Path, format_: str, schema: pa.Schema, **options: str) -> FileSink:
    sink = FileSink(FileOptions.read(format_, Options(format_, {"path": str(path), **options})), schema)
    sink.check()
    sink.open()
    return sink


def test_json_lines() -> None:
    rows = [json.loads(line) for line in lines(_BATCH).to_pylist()]
    assert rows[0] == {
        "i": 1, "f": 0.5, "s": 'say "hi"\n', "b": True, "d": 1.5, "t": "2026-01-01 01:02:03.000000",
        "day": "2026-01-01", "l": [1, 2], "e": "x",
    }  # fmt: skip
    assert rows[1]["f"] == "nan"
    assert [rows[1][name] for name in "ibdl"] == [None] * 4


def test_parquet(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "out", "parquet", _BATCH.schema)
    sink.write(_BATCH)
    assert [f.name for f in (tmp_path / "out").iterdir()] == []
    sink.close()
    assert [f.name for f in (tmp_path / "out").iterdir()] == ["part-00000.parquet"]
    assert pq.read_table(tmp_path / "out").schema.equals(_BATCH.schema)
    assert str(pq.read_table(tmp_path / "out").to_pylist()) == str(_BATCH.to_pylist())


def test_csv(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "out", "csv", _BATCH.schema, sep=";")
    sink.write(_BATCH)
    sink.close()
    back = pcsv.read_csv(
        tmp_path / "out" / "part-00000.csv", parse_options=pcsv.ParseOptions(delimiter=";", newlines_in_values=True)
    )
    assert back.column_names == _BATCH.schema.names
    assert back["s"].to_pylist() == ['say "hi"\n', "a\\b"]
    assert back["l"][0].as_py() == "[1, 2]"


def test_files_roll_over_and_are_complete_when_they_appear(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": list(range(70_000))})
    sink = _sink(tmp_path, "parquet", batch.schema, rows_per_file="100000")
    for expected in (0, 1, 1, 2):
        sink.write(batch)
        visible = sorted(f.name for f in tmp_path.iterdir() if not f.name.startswith("."))
        assert visible == [f"part-{i:05}.parquet" for i in range(expected)]
    sink.write(batch)
    sink.abandon()
    assert sorted(f.name for f in tmp_path.iterdir()) == visible
    assert pq.read_table(tmp_path).num_rows == 280_000


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_no_rows_is_an_empty_file(tmp_path: Path, format_: str) -> None:
    sink = _sink(tmp_path, format_, _BATCH.schema)
    sink.close()
    assert [f.name for f in tmp_path.iterdir()] == [f"part-00000.{format_}"]


_SCRIPT = (
    "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 10) TIMESTAMP BY ts;"
    "CREATE SINK out USING parquet OPTIONS (path 'out'{});INSERT INTO out SELECT k FROM s"
)


def test_modes(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    run_script(_SCRIPT.format(""))
    with pytest.raises(ScriptError, match="out already holds results; add mode 'overwrite' or mode 'append'"):
        run_script(_SCRIPT.format(""))
    run_script(_SCRIPT.format(", mode 'append'"))
    assert pq.read_table("out").num_rows == 20
    run_script(_SCRIPT.format(", mode 'overwrite'"))
    assert pq.read_table("out").num_rows == 10
    Path("file").write_text("")
    with pytest.raises(ScriptError, match="file is a file; the path of a sink is a folder"):
        run_script(_SCRIPT.format("").replace("path 'out'", "path 'file'"))


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (_SCRIPT.replace("USING parquet", "USING kafka"), "the local engine does not write 'kafka'"),
        (_SCRIPT.format(", mod 'x'"), "parquet has no option 'mod'"),
        (
            _SCRIPT.replace("BY ts;", "BY ts LATE INTO more; CREATE SINK more USING csv OPTIONS (path 'out');"),
            "is used twice",
        ),
    ],
)
def test_wrong_sinks(in_tmp: Path, run_script: Callable[..., Ran], script: str, answer: str) -> None:
    with pytest.raises(ScriptError, match=answer):
        run_script(script.format(""))
    assert list(in_tmp.iterdir()) == []


def test_print() -> None:
    out = io.StringIO()
    batch = pa.record_batch({"id": [7, 1000], "name": ["a", None]})
    sink = PrintSink(out, batch.schema, limit=3)
    sink.write(batch)
    sink.write(batch)
    sink.close()
    assert out.getvalue() == "  id  name\n----  ----\n   7  a\n1000  NULL\n   7  a\n... and 1 more rows\n"


def test_print_json(run_script: Callable[..., Ran]) -> None:
    ran = run_script(
        _SCRIPT.replace("USING parquet OPTIONS (path 'out'{})", "USING print OPTIONS (format json, limit 2)")
    )
    assert [list(json.loads(line)) for line in ran.printed.splitlines()] == [["k"], ["k"]]
