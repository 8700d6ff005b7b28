"""Iceberg tables in a SQL catalog on SQLite: batches once, other writers, columns, what is refused; read by polars."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from eddyline.errors import JobError, ScriptError, SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.iceberg import IcebergTable, open_table
from eddyline.runtime.sinks.sink import BatchMark, BatchOwner, Delivery

ME = BatchOwner("0123456789ab", "results")
NUMBERS = pa.schema([("k", pa.int64()), ("v", pa.string())])
pytestmark = pytest.mark.filterwarnings("ignore")


def catalog(folder: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"{folder}/lake"}


def table(folder: Path, schema: pa.Schema = NUMBERS, partition_by: tuple[str, ...] = (), **more: str) -> IcebergTable:
    given = {f"catalog.{key}": value for key, value in catalog(folder).items()}
    options = Options("iceberg", {"table": "lake.out", "create": "true", "mode": "append", **given, **more})
    opened = open_table(options, partition_by, schema)
    opened.check()
    opened.open()
    return opened


def delivery(batch: int, owner: BatchOwner = ME, history: int = 7) -> Delivery:
    return Delivery(owner, BatchMark(batch, history), None)


def add(to: IcebergTable, batch: int, rows: pa.RecordBatch, owner: BatchOwner | None = ME) -> None:
    to.add(lambda: iter([rows]), None if owner is None else delivery(batch, owner))


def numbers(*ks: int) -> pa.RecordBatch:
    return pa.record_batch([list(ks), [str(k) for k in ks]], schema=NUMBERS)


def rows(folder: Path) -> list[dict[str, Any]]:
    return pl.scan_iceberg(load_catalog("default", **catalog(folder)).load_table("lake.out")).collect().to_dicts()


def keys(folder: Path) -> list[int]:
    return sorted(row["k"] for row in rows(folder))


def test_a_batch_that_comes_again_is_left_out(tmp_path: Path) -> None:
    to = table(tmp_path)
    assert to.newest(ME) is None
    add(to, 3, numbers(1, 2))
    add(to, 3, numbers(1, 2))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        add(to, 2, numbers(0))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        to.add(lambda: iter([numbers(0)]), delivery(3, history=8))
    with pytest.raises(JobError, match="has batch 3 of another run of this job; start it again"):
        to.add(lambda: iter([numbers(0)]), Delivery(ME, BatchMark(4, 8), BatchMark(3, 8)))
    add(to, 4, numbers(5), BatchOwner("another", "results"))
    add(to, 0, numbers(6), None)
    assert keys(tmp_path) == [1, 2, 5, 6] and to.newest(ME) == table(tmp_path).newest(ME) == BatchMark(3, 7)
    loaded = load_catalog("default", **catalog(tmp_path)).load_table("lake.out")
    assert loaded.properties["eddyline.0123456789ab.results.batch"] == "3"
    assert "commit.retry.num-retries" not in loaded.properties, "the table belongs to others too"
    told = [snapshot.summary for snapshot in loaded.snapshots()]
    assert [one["eddyline.batch"] for one in told if one is not None] == ["3", "4", None]


def test_a_second_driver_does_not_write_a_batch_again(tmp_path: Path) -> None:
    """Both look before either writes; the second commit is refused, and the second look finds the batch."""
    one, two = table(tmp_path), table(tmp_path)

    def first_the_other() -> Iterator[pa.RecordBatch]:
        add(one, 0, numbers(7))
        yield numbers(7)

    two.add(first_the_other, delivery(0))
    assert keys(tmp_path) == [7]


def test_another_writer_in_between(tmp_path: Path) -> None:
    one, two = table(tmp_path), table(tmp_path)
    told = []

    def first_the_other() -> Iterator[pa.RecordBatch]:
        if not told:
            told.append(1)
            add(one, 0, numbers(8), BatchOwner("another", "results"))
        yield numbers(7)

    two.add(first_the_other, delivery(0))
    assert keys(tmp_path) == [7, 8] and two.newest(ME) == BatchMark(0, 7)


def test_types_and_partitions(tmp_path: Path) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, 678901)
    columns: dict[str, tuple[pa.Array, Any]] = {
        "byte": (pa.array([1], pa.int8()), 1),
        "huge": (pa.array([2**64 - 1], pa.uint64()), Decimal(2**64 - 1)),
        "decimal": (pa.array([Decimal("1.50")], pa.decimal128(10, 2)), Decimal("1.50")),
        "local": (pa.array([when], pa.timestamp("ns")), when),
        "clock": (pa.array([time(1, 2, 3)]), time(1, 2, 3)),
        "word": (pa.array(["x"]).dictionary_encode(), "x"),
        "list": (pa.array([[1, None]]), [1, None]),
        "bytes": (pa.array([[255, None]], pa.list_(pa.uint8())), [255, None]),
        "struct": (pa.array([{"a": 1, "b": "x"}]), {"a": 1, "b": "x"}),
        "nothing": (pa.array([None], pa.int32()), None),
    }
    given = pa.record_batch([array for array, _ in columns.values()], names=list(columns))
    add(table(tmp_path, given.schema, ("word",)), 0, given)
    table(tmp_path, given.schema)  # its own columns fit
    assert rows(tmp_path) == [{name: value for name, (_, value) in columns.items()}]
    assert list((tmp_path / "lake").rglob("word=x"))
    with pytest.raises(SettingError, match="has PARTITION BY word; write the same"):
        table(tmp_path, given.schema, ("byte",))
    with pytest.raises(SettingError, match="iceberg cannot hold a column of type INTERVAL, as x is"):
        table(tmp_path, pa.schema([("x", pa.duration("us"))]))
    with pytest.raises(SettingError, match="an Iceberg table cannot be divided by a column of type DOUBLE, as x is"):
        table(tmp_path, pa.schema([("x", pa.float64()), ("k", pa.int64())]), ("x",))


def test_other_columns_are_refused_or_merged(tmp_path: Path) -> None:
    add(table(tmp_path), 0, numbers(1))
    more = pa.record_batch({"k": pa.array([2], pa.int32()), "w": [0.5]})
    with pytest.raises(SettingError, match="has no column w; schema_evolution 'merge' adds it to the table"):
        table(tmp_path, more.schema)
    add(table(tmp_path, more.schema, schema_evolution="merge"), 1, more)
    assert sorted(rows(tmp_path), key=str) == [{"k": 1, "v": "1", "w": None}, {"k": 2, "v": None, "w": 0.5}]


def test_a_table_that_goes_away(tmp_path: Path) -> None:
    to = table(tmp_path)
    load_catalog("default", **catalog(tmp_path)).drop_table("lake.out")
    with pytest.raises(JobError, match=r"the Iceberg table lake.out: it was deleted while the job ran"):
        add(to, 0, numbers(1))


SCRIPT = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; CREATE SINK o "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "iceberg needs an option table"),
        ("table 'x'", "option table has a namespace, as in 'lake.x'"),
        ("table 'lake.x'", "the Iceberg table lake.x does not exist; create 'true' makes it"),
        ("table 'lake.x', catalog.token 'y'", "sink o: option catalog.token looks like a secret"),
        ("table 'lake.x', \"catalog.adls.account-key\" 'y'", "option catalog.adls.account-key looks like a secret"),
        ("table 'lake.x', catalog.header.authorization 'y'", "catalog.header.authorization looks like a secret"),
        ("table 'lake.x', mode 'upsert'", "option mode is append, not 'upsert'"),
        ("table 'lake.x', catalog.uri 'sqlite:////nowhere/x.db'", "cannot read the Iceberg table lake.x in the cat"),
    ],
)
def test_wrong_options(options: str, message: str, tmp_path: Path) -> None:
    given = [f"catalog.{key} '{value}'" for key, value in catalog(tmp_path).items() if f"catalog.{key}" not in options]
    text = ", ".join([*([options] if options else []), *given])
    with pytest.raises((ScriptError, SettingError), match=message):
        prepare(f"{SCRIPT} USING iceberg OPTIONS ({text}); INSERT INTO o SELECT k FROM s")


@pytest.mark.parametrize("more", [{}, {"catalog.type": "rest"}])
def test_a_secret_is_not_in_messages(more: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_URI", "mysqlx://ann:hunter2@db/lake/")
    given = {"table": "lake.out", "catalog.uri_env": "LAKE_URI", **more}
    with pytest.raises(SettingError, match=r"cannot read the Iceberg table lake.out in the catalog .*\*\*\*") as caught:
        open_table(Options("iceberg", given), (), NUMBERS).check()
    assert "hunter2" not in str(caught.value)


def test_a_catalog_that_is_down_is_no_fault_of_the_script() -> None:
    with pytest.raises(JobError, match=r"^cannot read .*127\.0\.0\.1"):
        table(Path("/none"), **{"catalog.type": "rest", "catalog.uri": "http://127.0.0.1:1"})
