"""Sinks: what is written can be read, files appear when they are complete, results are never mixed silently."""

from __future__ import annotations

import errno
import io
import json
import re
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from eddyline import faults
from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.batches import BatchFiles
from eddyline.runtime.sinks.file_sink import FileSink
from eddyline.runtime.sinks.files import FileOptions
from eddyline.runtime.sinks.folder import Folder
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


def _names(folder: Path) -> list[str]:
    """The files of a folder, without the id of the job, which is the same in all of ours."""
    names = sorted(file.name for file in folder.iterdir())
    ours = [match for name in names if (match := re.fullmatch(r"(part-[0-9]{8}-[0-9]{5})-([0-9a-f]{12})(\..*)", name))]
    assert len({match[2] for match in ours}) <= 1
    return sorted([match[1] + match[3] for match in ours] + [n for n in names if n not in {m[0] for m in ours}])


def test_intervals_in_lists_are_written_as_others() -> None:
    times, months = pa.array([5, None], pa.duration("us")), pa.array([(14, -1, 0), None], pa.month_day_nano_interval())
    plain = [json.loads(line) for line in lines(pa.record_batch({"t": times, "m": months})).to_pylist()]
    lists = [pa.ListArray.from_arrays([0, 2], array) for array in (times, months)]
    nested = json.loads(lines(pa.record_batch(lists, names=["t", "m"]))[0].as_py())
    assert nested == {name: [row[name] for row in plain] for name in ("t", "m")}
    assert nested["m"] == ["1 year 2 months -1 day", None]


def test_json_lines() -> None:
    rows = [json.loads(line) for line in lines(_BATCH).to_pylist()]
    assert rows[0] == {
        "i": 1, "f": 0.5, "s": 'say "hi"\n', "b": True, "d": 1.5, "t": "2026-01-01 01:02:03.000000",
        "day": "2026-01-01", "l": [1, 2], "e": "x",
    }  # fmt: skip
    assert rows[1]["f"] == "NaN"
    assert [rows[1][name] for name in "ibdl"] == [None] * 4


def test_parquet(tmp_path: Path) -> None:
    sink = _sink(tmp_path / "out", "parquet", _BATCH.schema)
    sink.write(_BATCH)
    assert _names(tmp_path / "out") == []
    sink.close()
    assert _names(tmp_path / "out") == ["part-00000000-00000.parquet"]
    assert pq.read_table(tmp_path / "out").schema.equals(_BATCH.schema)
    assert str(pq.read_table(tmp_path / "out").to_pylist()) == str(_BATCH.to_pylist())


def test_csv(tmp_path: Path) -> None:
    batch = _BATCH.drop_columns(["l"])
    sink = _sink(tmp_path / "out", "csv", batch.schema, sep=";")
    sink.write(batch)
    sink.close()
    (file,) = (tmp_path / "out").iterdir()
    back = pcsv.read_csv(file, parse_options=pcsv.ParseOptions(delimiter=";", newlines_in_values=True))
    assert back.column_names == batch.schema.names
    assert back["s"].to_pylist() == ['say "hi"\n', "a\\b"]
    assert ';true;1.50;2026-01-01 01:02:03.000000;2026-01-01;"x"' in file.read_text()  # only texts have quotes


def test_files_roll_over_and_are_complete_when_they_appear(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": list(range(70_000))})
    sink = _sink(tmp_path, "parquet", batch.schema, rows_per_file="100000")
    for expected in (0, 1, 2, 2):
        sink.write(batch)
        visible = [name for name in _names(tmp_path) if name != "_staged"]
        assert visible == [f"part-00000000-{i:05}.parquet" for i in range(expected)]
    sink.write(batch)
    sink.abandon()
    assert _names(tmp_path) == [*visible, "part-00000000-00002.parquet"]
    assert pq.read_table(tmp_path).num_rows == 300_000


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
def test_no_rows_is_an_empty_file(tmp_path: Path, format_: str) -> None:
    sink = _sink(tmp_path, format_, _BATCH.schema)
    sink.close()
    assert _names(tmp_path) == [f"part-00000000-00000.{format_}"]


@pytest.mark.parametrize("rows", [1, 999, 1000, 40_000, 65_536])
def test_no_file_has_more_rows_than_asked(tmp_path: Path, rows: int) -> None:
    batch = pa.record_batch({"x": list(range(100 if rows == 1 else max(3000, rows // 20)))})
    sink = _sink(tmp_path, "parquet", batch.schema, rows_per_file=str(rows))
    for _ in range(3 if rows < 40_000 else 70):
        sink.write(batch)
    sink.close()
    sizes = [pq.read_metadata(file).num_rows for file in sorted(tmp_path.iterdir())]
    assert set(sizes[:-1]) <= {rows}
    assert 0 < sizes[-1] <= rows
    assert pq.read_table(tmp_path)["x"].to_pylist()[: batch.num_rows] == batch["x"].to_pylist()


_OLD = (
    "part-00000.csv",
    "part-00007.parquet",
    "part-00000-6c9d0f2e-c000.snappy.parquet",
    "part-00000003-00000-0123456789ab.parquet",
    "batch-00000002/part-00000.parquet",
    "country=de/day=1/part-00000000-00000-0123456789ab.parquet",
    "by hand.json.gz",
)
"""Results of others: of both engines, before and now, and of Spark's own writers."""
_NO_RESULTS = (
    "notes.txt",
    "_SUCCESS",
    ".hidden.parquet",
    "more/deep.parquet",
    "customers.csv.bak",
    "x.parquet.md5",
    "x.csv.gz.part",
    "a=b.txt",
    "batch-7",
    "sub.parquet/deep.txt",
    ".a=b/deep.parquet",
)


def _write(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("old")


def _files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_overwrite_keeps_the_old_results_until_the_new_ones_are_complete(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": [1, 2, 3]})
    _write(tmp_path, (*_OLD, *_NO_RESULTS))
    for finish in (FileSink.abandon, FileSink.close):
        sink = _sink(tmp_path, "parquet", batch.schema, mode="overwrite", rows_per_file="2")
        sink.write(batch)
        sink._flush()
        assert [f for f in _files(tmp_path) if "_staged" not in f] == sorted((*_OLD, *_NO_RESULTS))
        finish(sink)
        sink.abandon()
        if finish is FileSink.abandon:
            assert _files(tmp_path) == sorted((*_OLD, *_NO_RESULTS))
    new = ["part-00000000-00000.parquet", "part-00000000-00001.parquet"]
    assert _names(tmp_path) == sorted([*{name.split("/")[0] for name in _NO_RESULTS}, *new])
    assert pq.read_table(sorted(tmp_path.glob("part-*.parquet"))).num_rows == 3


_KEYS = pa.record_batch({"k": ["a", "b", "c"], "x": [1, 2, 3]})


def _whole_run(path: Path) -> None:
    """As the local runner does it without a checkpoint."""
    sink = _sink(path, "parquet", _KEYS.schema, mode="overwrite", rows_per_file="1")
    try:
        sink.write(_KEYS)
        sink.close()
    finally:
        sink.abandon()


def _batch_by_batch(path: Path) -> None:
    """As a job does it whose checkpoint goes with it."""
    sink = BatchFiles(FileOptions(path, "parquet", "overwrite", 1), _KEYS.schema, "ba9876543210")
    sink.keep_until_the_end()
    try:
        for batch in range(3):
            sink.publish(batch, sink.stage(f"{batch:08}", [_KEYS.slice(batch, 1)]))
        sink.close(2)
    finally:
        sink.abandon()


@pytest.mark.parametrize("run", [_whole_run, _batch_by_batch])
def test_overwrite_that_cannot_publish_leaves_the_old_results_alone(
    tmp_path: Path, run: Callable[[Path], None]
) -> None:
    reached = []

    def full(name: str) -> None:
        reached.extend([name] if name == "sink: before a file is published" else [])
        if len(reached) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")

    run(tmp_path)
    old = _files(tmp_path)
    (tmp_path / old[0]).rename(tmp_path / "old.parquet")  # else the files of the same job id would be the same
    for file in old[1:]:
        (tmp_path / file).unlink()
    faults.inject(full)
    try:
        with pytest.raises(JobError, match="No space left on device"):
            run(tmp_path)
    finally:
        faults.inject(None)
    assert len(reached) == 3 and _files(tmp_path) == ["old.parquet"]
    run(tmp_path)
    assert len(_files(tmp_path)) == 3 and pq.read_table(tmp_path).num_rows == 3


def test_overwrite_of_folders_where_a_file_is_in_the_way(tmp_path: Path) -> None:
    def write(rows: pa.RecordBatch) -> None:
        options = FileOptions.read("parquet", Options("parquet", {"path": str(tmp_path), "mode": "overwrite"}), ("k",))
        sink = FileSink(options, rows.schema)
        sink.open()
        try:
            sink.write(rows)
            sink.close()
        finally:
            sink.abandon()

    write(_KEYS.slice(0, 1))
    old = _files(tmp_path)
    (tmp_path / "k=b").write_text("a file of the user")
    with pytest.raises(JobError, match="File exists"):
        write(_KEYS)
    assert _files(tmp_path) == [*old, "k=b"]


def test_a_sink_that_has_replaced_its_results_keeps_them_when_another_fails(tmp_path: Path) -> None:
    for _ in range(2):
        sink = _sink(tmp_path, "parquet", _KEYS.schema, mode="overwrite")
        sink.write(_KEYS)
        sink.close()
        sink.abandon()
        assert pq.read_table(tmp_path).num_rows == 3


@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
def test_a_link_in_place_of_a_folder_of_a_partition_is_refused(tmp_path: Path, mode: str) -> None:
    _write(tmp_path, ["elsewhere/part-0.parquet", "out/notes.txt"])
    (tmp_path / "out/k=a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SettingError, match="out/k=a is a link to a folder; remove the link, or choose another path"):
        _sink(tmp_path / "out", "parquet", _KEYS.schema, mode=mode)
    assert _files(tmp_path / "elsewhere") == ["part-0.parquet"]


def test_hidden_files_among_staged_ones(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "ba9876543210")
    _write(folder.staged, [".nfs0000000000c0ffee", "00000001-0-00000.parquet", "00000002-0-00000.parquet"])
    folder.tidy(1)
    assert _files(folder.staged) == [".nfs0000000000c0ffee", "00000002-0-00000.parquet"]


def test_the_staging_folder_stays_until_the_run_ends(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "out", "ba9876543210")
    _write(folder.staged, ["k=a/00000001-0-00000.parquet", "00000001-1-00000.parquet"])
    folder.tidy(1)
    assert _names(folder.staged) == []
    _write(folder.staged, ["k=a/00000002-0-00000.parquet"])
    folder.pause()
    assert _files(folder.staged) == ["k=a/00000002-0-00000.parquet"]
    folder.tidy(2)
    folder.pause()
    assert _names(tmp_path / "out") == []


@pytest.mark.parametrize("old", _OLD)
def test_results_of_others_are_refused_whoever_wrote_them(tmp_path: Path, old: str) -> None:
    _write(tmp_path, _NO_RESULTS)
    _sink(tmp_path, "parquet", _BATCH.schema)
    _write(tmp_path, [old])
    with pytest.raises(SettingError, match=f"already holds results .{re.escape(old)}.; add mode 'overwrite' or mode"):
        _sink(tmp_path, "parquet", _BATCH.schema)
    with pytest.raises(SettingError, match="already holds results"):
        BatchFiles(FileOptions(tmp_path, "parquet", "error", 10), _BATCH.schema, "ba9876543210").check(None)


def test_a_failed_job_loses_no_old_results(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    run_script(_SCRIPT.format(""))
    Path("bad").mkdir()
    Path("bad/a.csv").write_text("ts,k\n2026-01-01 00:00:00,1\n")
    Path("bad/b.csv").write_text("ts,other\n2026-01-01 00:00:00,1\n")
    failing = _SCRIPT.replace(
        "(ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 10)", "USING csv OPTIONS (path 'bad')"
    )
    with pytest.raises(JobError, match=r"bad/b.csv has the header .* lacks k"):
        run_script(failing.format(", mode 'overwrite'"))
    assert _names(Path("out")) == ["part-00000000-00000.parquet"]
    assert pq.read_table("out").num_rows == 10


@pytest.mark.parametrize(
    ("sink", "source"),
    [("d", "d"), ("./d/", "d"), ("d/out", "d"), (".", "d"), ("d", "d/a.csv"), ("d", "*/*.csv"), ("link", "d")],
)
def test_results_do_not_go_where_rows_come_from(
    in_tmp: Path, run_script: Callable[..., Ran], sink: str, source: str
) -> None:
    Path("d").mkdir()
    Path("link").symlink_to("d")
    Path("d/a.csv").write_text("ts,k\n2026-01-01 00:00:00,1\n")
    script = (
        f"CREATE STREAM s USING csv OPTIONS (path '{source}') TIMESTAMP BY ts;"
        f"CREATE SINK out USING csv OPTIONS (path '{sink}', mode 'overwrite');INSERT INTO out SELECT k FROM s"
    )
    with pytest.raises(ScriptError, match="which s is read from; results need a folder of their own"):
        run_script(script)
    run_script(script.replace(f"(path '{sink}', mode", "(path 'd2', mode"))


_SCRIPT = (
    "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 10) TIMESTAMP BY ts;"
    "CREATE SINK out USING parquet OPTIONS (path 'out'{});INSERT INTO out SELECT k FROM s"
)


def test_modes(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    run_script(_SCRIPT.format(""))
    with pytest.raises(ScriptError, match=r"out already holds results \(part-.*\); add mode 'overwrite' or mode"):
        run_script(_SCRIPT.format(""))
    run_script(_SCRIPT.format(", mode 'append'"))
    assert pq.read_table("out").num_rows == 20
    run_script(_SCRIPT.format(", mode 'overwrite'"))
    assert pq.read_table("out").num_rows == 10
    Path("file").write_text("")
    with pytest.raises(ScriptError, match="writes no files to s3a://b/out: use --engine spark, or a folder"):
        run_script(_SCRIPT.format("").replace("path 'out'", "path 's3a://b/out'"))
    with pytest.raises(ScriptError, match="file is a file; the path of a sink is a folder"):
        run_script(_SCRIPT.format("").replace("path 'out'", "path 'file'"))


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        (_SCRIPT.replace("USING parquet", "USING orc"), "does not write 'orc'; --engine spark does"),
        (_SCRIPT.format(", mod 'x'"), "parquet has no option 'mod'"),
        (
            _SCRIPT.replace("BY ts;", "BY ts LATE INTO more; CREATE SINK more USING csv OPTIONS (path 'out');"),
            "is used twice",
        ),
        (
            _SCRIPT.replace("BY ts;", "BY ts LATE INTO more; CREATE SINK more USING csv OPTIONS (path './out/');"),
            "the path 'out' is used twice",
        ),
        (
            _SCRIPT.replace("BY ts;", "BY ts LATE INTO more; CREATE SINK more USING csv OPTIONS (path 'out/k=late');"),
            "the path 'out' contains or lies in 'out/k=late', which another sink writes to",
        ),
        (
            _SCRIPT.replace("BY ts;", "BY ts LATE INTO more; CREATE SINK more USING csv OPTIONS (path '.');"),
            "the path 'out' contains or lies in '.', which another sink writes to",
        ),
    ],
)
def test_wrong_sinks(in_tmp: Path, run_script: Callable[..., Ran], script: str, answer: str) -> None:
    with pytest.raises(ScriptError, match=answer):
        run_script(script.format(""))
    assert list(in_tmp.iterdir()) == []


@pytest.mark.parametrize(
    ("format_", "type_", "answer"),
    [
        ("csv", pa.binary(), "csv cannot hold a column of type BLOB, as x is; use parquet or json"),
        ("csv", pa.list_(pa.int64()), r"csv cannot hold a column of type BIGINT\[\]"),
        ("csv", pa.struct([("a", pa.int64())]), r"csv cannot hold a column of type STRUCT\(a BIGINT\)"),
        ("csv", pa.map_(pa.string(), pa.int64()), r"csv cannot hold a column of type MAP\(VARCHAR, BIGINT\)"),
        ("json", pa.map_(pa.int64(), pa.int64()), "json cannot hold a map whose keys are not text, as column x does"),
        ("json", pa.list_(pa.map_(pa.int64(), pa.int64())), "json cannot hold a map whose keys are not text"),
    ],
)
def test_columns_that_a_format_cannot_hold(
    in_tmp: Path, run_script: Callable[..., Ran], format_: str, type_: pa.DataType, answer: str
) -> None:
    source = pa.table({"ts": pa.array([], pa.timestamp("us")), "x": pa.array([], type_)})
    pq.write_table(source, "d.parquet")
    script = (
        "CREATE STREAM s USING parquet OPTIONS (path 'd.parquet') TIMESTAMP BY ts;"
        f"CREATE SINK out USING {format_} OPTIONS (path 'out');INSERT INTO out SELECT x FROM s"
    )
    with pytest.raises(ScriptError, match=answer):
        run_script(script)
    assert not Path("out").exists()


def test_json_can_be_read_back(in_tmp: Path, run_script: Callable[..., Ran]) -> None:
    columns = {
        "b": (pa.binary(), "BLOB", [b"\x00\xff", b"", None]),
        "x": (pa.float64(), "DOUBLE", [float("inf"), float("-inf"), 0.5]),
        "f": (pa.float32(), "FLOAT", [1.5, None, float("inf")]),
        "m": (pa.map_(pa.string(), pa.float64()), "MAP(VARCHAR, DOUBLE)", [[("a", 1.0)], [("b", float("inf"))], None]),
        "s": (
            pa.struct([("d", pa.date32()), ("b", pa.binary())]),
            "STRUCT(d DATE, b BLOB)",
            [{"d": date(2026, 1, 1), "b": b"\xff"}, None, {"d": None, "b": None}],
        ),
    }
    times = pa.array([datetime(2026, 1, 1)] * 3, pa.timestamp("us"))
    source = pa.table({"ts": times, **{name: pa.array(v, t) for name, (t, _, v) in columns.items()}})
    pq.write_table(source, "d.parquet")
    run_script(
        "CREATE STREAM s USING parquet OPTIONS (path 'd.parquet') TIMESTAMP BY ts;"
        "CREATE SINK out USING json OPTIONS (path 'out');INSERT INTO out SELECT * FROM s"
    )
    assert json.loads(next(Path("out").iterdir()).read_text().splitlines()[1])["m"] == {"b": "Infinity"}
    for name, (_, sql, _) in columns.items():
        ran = run_script(
            f"CREATE STREAM s (ts TIMESTAMP, {name} {sql}) USING json OPTIONS (path 'out') TIMESTAMP BY ts;"
            f"SELECT {name} FROM s"
        )
        assert [row[name] for row in ran.rows] == source[name].to_pylist()


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
