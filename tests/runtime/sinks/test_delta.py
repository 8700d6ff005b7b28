"""Delta tables: types, columns, partitions, other writers; read back by polars and by Arrow, not by the writer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.delta import DeltaLakeTable, open_table
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery

ME = BatchOwner("0123456789ab", "results")
NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.string())])


def table(
    path: Path, schema: pa.Schema = NUMBERS, partition_by: tuple[str, ...] = (), **options: str
) -> DeltaLakeTable:
    opened = open_table(Options("delta", {"path": str(path), "mode": "append", **options}), partition_by, schema)
    opened.check()
    opened.open()
    return opened


def delivery(batch: int, owner: BatchOwner = ME, history: int = 7) -> Delivery:
    return Delivery(owner, BatchMark(batch, history), None)


def add(to: DeltaLakeTable, batch: int, rows: pa.RecordBatch, owner: BatchOwner | None = ME) -> None:
    to.add(lambda: iter([rows]), None if owner is None else delivery(batch, owner))


def numbers(*ks: int) -> pa.RecordBatch:
    return pa.record_batch([list(ks), [str(k) for k in ks]], schema=NUMBERS)


def commits(path: Path) -> list[dict[str, Any]]:
    """The actions of all commits, from the files of the log."""
    files = sorted((path / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_batch_and_its_number_are_one_commit(tmp_path: Path) -> None:
    to = table(tmp_path)
    add(to, 3, numbers(1, 2))
    add(to, 3, numbers(1, 2))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        add(to, 2, numbers(0))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        to.add(lambda: iter([numbers(0)]), delivery(3, history=8))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        to.add(lambda: iter([numbers(0)]), Delivery(ME, BatchMark(4, 8), BatchMark(3, 8)))
    (last,) = (tmp_path / "_delta_log").glob("*1.json")
    marks = [json.loads(line)["txn"] for line in last.read_text().splitlines() if "txn" in line]
    me = "eddyline-0123456789ab-results"
    assert {mark["appId"]: mark["version"] for mark in marks} == {me: 3, f"{me}-history": 7}
    assert len(list((tmp_path / "_delta_log").glob("*.json"))) == 2
    added = [action["add"]["path"] for action in commits(tmp_path) if "add" in action]
    assert [pq.read_table(tmp_path / path)["k"].to_pylist() for path in added] == [[1, 2]]
    assert (
        to.newest(ME) == table(tmp_path).newest(ME) == BatchMark(3, 7)
        and to.newest(BatchOwner("another", "results")) is None
    )


def test_a_second_driver_does_not_write_a_batch_again(tmp_path: Path) -> None:
    """Both look before either writes; Delta then refuses the second commit, and the second look finds the batch."""
    one, two = table(tmp_path), table(tmp_path)

    def first_the_other() -> Iterator[pa.RecordBatch]:
        other = Thread(target=add, args=(one, 0, numbers(7)))
        other.start()
        other.join()
        yield numbers(7)

    two.add(first_the_other, delivery(0))
    assert pl.read_delta(str(tmp_path))["k"].to_list() == [7]


def test_other_writers_at_the_same_time(tmp_path: Path) -> None:
    def write(job: str) -> None:
        mine = table(tmp_path)
        for batch in range(8):
            add(mine, batch, numbers(batch), BatchOwner(job, "results"))

    table(tmp_path)
    threads = [Thread(target=write, args=(job,)) for job in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(pl.read_delta(str(tmp_path))["k"].to_list()) == sorted([*range(8)] * 2)


def test_types(tmp_path: Path) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901)
    columns: dict[str, tuple[pa.Array, Any]] = {
        "byte": (pa.array([1], pa.int8()), 1),
        "unsigned": (pa.array([200], pa.uint8()), 200),
        "huge": (pa.array([2**64 - 1], pa.uint64()), Decimal(2**64 - 1)),
        "half": (pa.array([0.5], pa.float16()), 0.5),
        "decimal": (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), Decimal("1.50")),
        "day": (pa.array([date(2026, 1, 1)]), date(2026, 1, 1)),
        "local": (pa.array([when], pa.timestamp("us")), when),
        "moment": (pa.array([when], pa.timestamp("us", "Europe/Berlin")), when.replace(tzinfo=UTC)),
        "seconds": (pa.array([when.replace(microsecond=0)], pa.timestamp("s")), when.replace(microsecond=0)),
        "nanos": (pa.array([1_767_323_045_678_901_999], pa.timestamp("ns")), datetime(2026, 1, 2, 3, 4, 5, 678901)),
        "word": (pa.array(["x"]).dictionary_encode(), "x"),
        "large": (pa.array(["y"], pa.large_string()), "y"),
        "bytes": (pa.array([b"\x00\xff"], pa.binary(2)), b"\x00\xff"),
        "list": (pa.array([[1, None]], pa.large_list(pa.uint16())), [1, None]),
        "struct": (pa.array([{"a": 1, "b": "x"}]), {"a": 1, "b": "x"}),
        "nothing": (pa.array([None], pa.int32()), None),
    }
    rows = pa.record_batch([array for array, _ in columns.values()], names=list(columns))
    add(table(tmp_path, rows.schema), 0, rows)
    (back,) = pl.read_delta(str(tmp_path)).to_dicts()
    assert back == {name: value for name, (_, value) in columns.items()}


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (pa.duration("us"), "delta cannot hold a column of type INTERVAL, as x is; write it as text with CAST"),
        (pa.time64("us"), "delta cannot hold a column of type TIME, as x is"),
        (pa.list_(pa.duration("us")), "delta cannot hold a column of type INTERVAL, as x is"),
        (pa.null(), r"column x is always NULL and has no type; write CAST\(NULL AS VARCHAR\)"),
    ],
)
def test_types_that_delta_has_not(tmp_path: Path, type_: pa.DataType, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        table(tmp_path, pa.schema([("x", type_)]))


def test_partitions(tmp_path: Path) -> None:
    add(table(tmp_path, partition_by=("V",)), 0, numbers(1, 2, 1))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "_delta_log") == ["v=1", "v=2"]
    assert pl.read_delta(str(tmp_path)).sort("k").to_dicts() == [{"k": k, "v": str(k)} for k in (1, 1, 2)]
    with pytest.raises(SettingError, match="has PARTITION BY v; write the same"):
        table(tmp_path, partition_by=("k",))
    add(table(tmp_path), 1, numbers(3))
    for wrong, message in (
        (("w",), "PARTITION BY w: there is no such column"),
        (("k", "v"), "PARTITION BY names all columns"),
    ):
        with pytest.raises(SettingError, match=message):
            table(tmp_path / "new", partition_by=wrong)
    for type_, name in ((pa.binary(), "BLOB"), (pa.decimal128(6, 2), r"DECIMAL\(6,2\)"), (pa.float32(), "FLOAT")):
        with pytest.raises(SettingError, match=f"a Delta table cannot be divided by a column of type {name}, as b is"):
            table(tmp_path / "new", pa.schema([("b", type_), ("k", pa.int64())]), partition_by=("b",))


def test_other_columns_are_refused_or_merged(tmp_path: Path) -> None:
    write_deltalake(tmp_path, pa.table({"k": pa.array([1], pa.int32()), "old": ["x"]}))
    path = str(tmp_path)
    with pytest.raises(SettingError, match=r"has no column new; schema_evolution 'merge' adds it to the table"):
        table(tmp_path, pa.schema([("k", pa.int32()), ("old", pa.string()), ("new", pa.string())]))
    with pytest.raises(SettingError, match=r"has a column old, which the results lack; schema_evolution 'merge'"):
        table(tmp_path, pa.schema([("k", pa.int32())]))
    with pytest.raises(SettingError, match=r"column k is INTEGER in the Delta table .*, and BIGINT in the results"):
        table(tmp_path, pa.schema([("k", pa.int64()), ("old", pa.string())]))
    with pytest.raises(SettingError, match="has a column old, not OLD"):
        table(tmp_path, pa.schema([("k", pa.int32()), ("OLD", pa.string())]))
    rows = pa.record_batch({"new": ["y"], "k": pa.array([2], pa.int16())})
    add(table(tmp_path, rows.schema, schema_evolution="merge"), 0, rows)
    back = pl.read_delta(path).sort("k").to_dicts()
    assert back == [{"k": 1, "old": "x", "new": None}, {"k": 2, "old": None, "new": "y"}]


def test_the_table_changes_while_the_job_runs(tmp_path: Path) -> None:
    to = table(tmp_path)
    add(to, 0, numbers(1))
    write_deltalake(tmp_path, pa.table({"k": [2], "v": ["2"], "w": [2]}), mode="append", schema_mode="merge")
    with pytest.raises(JobError, match="has a column w, which the results lack"):
        add(to, 1, numbers(2))


SCRIPT = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; CREATE SINK o "


@pytest.mark.parametrize(
    ("sink", "message"),
    [
        ("(path 'o', mode 'overwrite')", "option mode is append, not 'overwrite'"),
        ("(path 'o', schema_evolution 'yes')", "option schema_evolution is refuse or merge, not 'yes'"),
        ("(path 'o', create 'false')", "the Delta table o does not exist; create 'true' makes it"),
        ("(path 'o', storge.region 'x')", "delta has no option 'storge.region'"),
        ("()", r"delta needs an option path, as in OPTIONS \(path 'lake/out'\)"),
        ("(path 'o', storage.aws_secret_access_key 'x')", "sink o: option storage.aws_secret_access_key looks like a"),
        ("(path 'o', storage.sas_key 'x')", "sink o: option storage.sas_key looks like a secret"),
        ("(path 'o', storage.token_env 'NO_SUCH')", "names the environment variable NO_SUCH, which is not set"),
    ],
)
def test_wrong_options(sink: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ScriptError, SettingError), match=message):
        prepare(f"{SCRIPT} USING delta OPTIONS {sink}; INSERT INTO o SELECT k FROM s")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises((SettingError, JobError), match="the Delta table"):
        table(tmp_path / "file" / "out")


def test_nothing_but_the_table_is_left(tmp_path: Path) -> None:
    to = table(tmp_path)
    add(to, 0, numbers(1))
    to.close()
    assert {Path(uri).name for uri in DeltaTable(tmp_path).file_uris()} == {
        path.name for path in tmp_path.iterdir() if path.is_file()
    }
