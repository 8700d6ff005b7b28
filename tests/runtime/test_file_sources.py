"""Files: schemas, projection, order, dead rows, and what is refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from eddyline.errors import JobError, ScriptError
from tests.conftest import Ran, at

Run = Callable[..., Ran]
Table = Callable[..., pa.Table]
_CSV = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, x DOUBLE) USING csv OPTIONS (path 'd') TIMESTAMP BY ts;"
_JSON = "CREATE STREAM s (ts TIMESTAMP, k BIGINT, x DOUBLE) USING json OPTIONS (path 'd') TIMESTAMP BY ts;"


def _rows(ran: Ran, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[n] for n in names) for row in ran.rows), key=str)


def test_parquet_folder_in_the_order_of_names(in_tmp: Path, run_script: Run, table: Table) -> None:
    Path("d").mkdir()
    for name, seconds in (("b", 5), ("a", 1), ("c", 9)):
        pq.write_table(table("k", (seconds, seconds)), f"d/{name}.parquet")
    Path("d/_SUCCESS").write_text("")
    ran = run_script(
        "CREATE STREAM s USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s", {"batch_rows": 1}
    )
    assert [row["k"] for row in ran.rows] == [1, 5, 9]
    assert (ran.summary.rows_in, ran.summary.rows_late, ran.summary.batches) == (3, 0, 4)


def test_glob_and_single_file(in_tmp: Path, run_script: Run, table: Table) -> None:
    for day in (1, 2):
        Path(f"day={day}").mkdir()
        pq.write_table(table("k", (day, day)), f"day={day}/x.parquet")
    script = "CREATE STREAM s USING parquet OPTIONS (path '{}') TIMESTAMP BY ts; SELECT k FROM s"
    assert _rows(run_script(script.format("day=*/*.parquet")), "k") == [(1,), (2,)]
    assert _rows(run_script(script.format("day=2/x.parquet")), "k") == [(2,)]


def test_declared_types_and_columns_that_nobody_reads(in_tmp: Path, run_script: Run) -> None:
    source = pa.table({"ts": ["2026-01-01 00:00:01", "2026-01-01 00:00:02"], "k": ["1", "2"], "junk": ["a", "b"]})
    pq.write_table(source, "d.parquet")
    ran = run_script(
        "CREATE STREAM s (ts TIMESTAMP, k BIGINT, junk BIGINT) USING parquet OPTIONS (path 'd.parquet')"
        "TIMESTAMP BY ts; SELECT k FROM s"
    )
    assert _rows(ran, "k") == [(1,), (2,)]
    assert ran.summary.rows_dead == 0


def test_schema_that_changes_between_files(in_tmp: Path, run_script: Run, table: Table) -> None:
    Path("d").mkdir()
    pq.write_table(table("k", (1, 1)), "d/a.parquet")
    pq.write_table(table("k", (2, "two")), "d/b.parquet")
    script = "CREATE STREAM s {} USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s"
    with pytest.raises(
        JobError, match=r"column k is string in d/b.parquet but int64 in d/a.parquet; declare the columns"
    ):
        run_script(script.format(""))
    ran = run_script(script.format("(ts TIMESTAMP, k BIGINT)"))
    assert (ran.summary.rows_used, ran.summary.rows_dead) == (1, 1)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("nowhere", "there is no file or folder nowhere"),
        ("x*.parquet", "no file matches x*.parquet"),
        ("empty", "empty holds no file to take the columns from; declare them"),
    ],
)
def test_wrong_paths_are_the_scripts_fault(in_tmp: Path, run_script: Run, path: str, answer: str) -> None:
    Path("empty").mkdir()
    for format_ in ("parquet", "csv", "json"):
        with pytest.raises(ScriptError) as refused:
            run_script(f"CREATE STREAM s USING {format_} OPTIONS (path '{path}') TIMESTAMP BY ts; SELECT ts FROM s")
        assert (refused.value.message, refused.value.line, refused.value.column) == (answer, 1, 15)


def test_broken_files(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_bytes(b"PAR1 this is no parquet file PAR1")
    with pytest.raises(JobError, match=r"^d cannot be read as parquet: "):
        run_script("CREATE STREAM s USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT ts FROM s")
    Path("d.gz").write_bytes(b"no gzip")
    for format_ in ("csv", "json"):
        with pytest.raises(JobError, match=rf"^d.gz cannot be read as {format_}: "):
            run_script(
                f"CREATE STREAM s (ts TIMESTAMP) USING {format_} OPTIONS (path 'd.gz') TIMESTAMP BY ts;SELECT ts FROM s"
            )


def test_empty_folder_with_declared_columns(in_tmp: Path, run_script: Run) -> None:
    Path("d").mkdir()
    assert run_script(_CSV + "SELECT k FROM s").summary.rows_in == 0


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ("", "ts,k,x\n2026-01-01 00:00:01,1,0.5\n"),
        ("", "2026-01-01 00:00:01,1,0.5\n"),
        ("", "x,K,other,TS\n0.5,1,?,2026-01-01 00:00:01\n"),
        (", header 'true'", "k,x,ts\n1,0.5,2026-01-01T00:00:01Z\n"),
        (", header false, sep ';'", "2026-01-01 00:00:01;1;0.5\n"),
    ],
)
def test_csv_headers(in_tmp: Path, run_script: Run, header: str, text: str) -> None:
    Path("d").write_text(text)
    ran = run_script(_CSV.replace("'d'", "'d'" + header) + "SELECT ts, k, x FROM s")
    assert _rows(ran, "ts", "k", "x") == [(at(1), 1, 0.5)]


def test_csv_types_are_inferred(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("ts,k,x,name,flag\n2026-01-01 00:00:01.5,1,0.5,a b,true\n2026-01-01 00:00:02,2,1,,false\n")
    ran = run_script("CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT * FROM s")
    assert ran.rows[0] == {"ts": at(1.5), "k": 1, "x": 0.5, "name": "a b", "flag": True}
    assert ran.rows[1]["name"] is None


def test_csv_dead_rows(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_bytes(
        b"ts,k,x\n2026-01-01 00:00:01,1,0.5\nyesterday,2,0.5\n2026-01-01 00:00:03,three,0.5\n2026-01-01 00:00:04\n"
        b"2026-01-01 00:00:05,5,five\n2026-01-01 00:00:06,\xff,0.5\n,7,0.5\n2026-01-01 00:00:08,8,\n"
    )
    script = _CSV.replace(";", " DEAD INTO graveyard;") + "CREATE SINK graveyard USING json OPTIONS (path 'dead');"
    ran = run_script(script + "SELECT k FROM s")
    assert _rows(ran, "k") == [(1,), (5,), (8,)]
    assert (ran.summary.rows_in, ran.summary.rows_used, ran.summary.rows_dead) == (8, 3, 5)
    dead = [json.loads(line) for line in Path("dead/part-00000.json").read_text().splitlines()]
    assert sorted(row["reason"] for row in dead) == [
        "1 columns where 3 were expected: 2026-01-01 00:00:04",
        "column k: 'three' is not a value of type int64",
        "column ts: 'yesterday' is not a value of type timestamp[us]",
        "not text in UTF-8",
        "the event time is NULL or out of range",
    ]
    assert next(row for row in dead if "three" in row["reason"])["x"] == "0.5"


def test_a_dead_letter_output_does_not_change_the_result(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("2026-01-01 00:00:01,1,unreadable\n")
    sink = "CREATE SINK graveyard USING csv OPTIONS (path 'dead');"
    with_output = run_script(_CSV.replace(";", " DEAD INTO graveyard;") + sink + "SELECT k FROM s")
    assert with_output.rows == run_script(_CSV + "SELECT k FROM s").rows == [{"k": 1}]
    assert run_script(_CSV + "SELECT k, x FROM s").summary.rows_dead == 1


def test_csv_in_many_blocks_and_gzip(in_tmp: Path, run_script: Run) -> None:
    lines = [f"2026-01-01 00:00:{i % 60:02},{'bad' if i % 1000 == 0 else i},0.25" for i in range(100_000)]
    Path("d").mkdir()
    with gzip.open("d/x.csv.gz", "wt") as file:
        file.write("\n".join(lines))
    ran = run_script(_CSV.replace("TIMESTAMP BY ts", "TIMESTAMP BY ts LATENESS 1 HOUR") + "SELECT k FROM s WHERE k < 5")
    assert _rows(ran, "k") == [(1,), (2,), (3,), (4,)]
    assert (ran.summary.rows_in, ran.summary.rows_dead) == (100_000, 100)


def test_json(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text(
        '{"ts": "2026-01-01T00:00:01.5Z", "k": 1, "more": {"deep": [1, 2]}, "day": "2026-01-01"}\n\n'
        '{"k": 2, "ts": "2026-01-01T00:00:02Z"}\n'
    )
    ran = run_script("CREATE STREAM s USING json OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k, more FROM s")
    assert ran.rows == [{"k": 1, "more": {"deep": [1, 2]}}, {"k": 2, "more": None}]
    declared = "CREATE STREAM s (ts TIMESTAMP, k INTEGER, day DATE) USING json OPTIONS (path 'd') TIMESTAMP BY ts;"
    assert run_script(declared + "SELECT ts, k, day FROM s").rows[0] == {"ts": at(1.5), "k": 1, "day": at(0).date()}


def test_json_dead_rows(in_tmp: Path, run_script: Run) -> None:
    good = [json.dumps({"ts": "2026-01-01T00:00:01", "k": i, "x": i / 2}) for i in range(500)]
    bad = ['{"ts": "2026-01-01T00:00:02", "k": "many"}', "[1]", '{"k": ', '{"ts": 5, "k": 1}', '{"k": 1}', "\x00"]
    Path("d").write_text("\n".join([*good[:250], *bad, *good[250:], '{"ts": "2026-01-01T00:00:01", "k": "500"}']))
    script = _JSON.replace(";", " DEAD INTO graveyard;") + "CREATE SINK graveyard USING parquet OPTIONS (path 'dead');"
    ran = run_script(script + "SELECT k FROM s")
    assert sorted(row["k"] for row in ran.rows) == list(range(501))
    assert (ran.summary.rows_in, ran.summary.rows_dead) == (507, 6)
    reasons = pq.read_table("dead").column("reason").to_pylist()
    assert len(reasons) == 6
    assert "column k: 'many' is not a value of type int64" in reasons
    assert any(reason.endswith(": [1]") for reason in reasons)


def test_json_where_every_row_is_odd(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("\n".join(f'{{"ts": "2026-01-01 00:00:01", "k": "{i}", "x": 1}}' for i in range(5000)))
    assert sum(row["k"] for row in run_script(_JSON + "SELECT k FROM s").rows) == sum(range(5000))


def test_static_tables(in_tmp: Path, run_script: Run, table: Table) -> None:
    pcsv.write_csv(pa.table({"id": [1, 2], "name": ["one", "two"]}), "names.csv")
    pq.write_table(table("k", (1, 1), (2, 2), (3, 3)), "d.parquet")
    ran = run_script(
        "CREATE STREAM s USING parquet OPTIONS (path 'd.parquet') TIMESTAMP BY ts;"
        "CREATE TABLE names USING csv OPTIONS (path 'names.csv'); SELECT k, name FROM s, names WHERE k = id"
    )
    assert _rows(ran, "k", "name") == [(1, "one"), (2, "two")]


@pytest.mark.parametrize(
    ("declaration", "answer"),
    [
        (
            "USING kafka OPTIONS (topic 't')",
            "the local engine does not read 'kafka'; there is parquet, csv, json, generate",
        ),
        ("USING parquet", "parquet needs an option path, as in OPTIONS (path 'data/s')"),
        ("USING parquet OPTIONS (pth 'x', path 'd')", "parquet has no option 'pth'; did you mean 'path'?"),
        ("USING csv OPTIONS (path 'd', header 'maybe')", "option header is auto or true or false, not 'maybe'"),
        ("USING csv OPTIONS (path 'd', sep '||')", "option sep is one character, not '||'"),
        ("(t TIME) USING csv OPTIONS (path 'd')", "column t: a value of type time64[us] cannot be read from csv"),
    ],
)
def test_wrong_declarations(in_tmp: Path, run_script: Run, declaration: str, answer: str) -> None:
    Path("d").write_text("")
    with pytest.raises(ScriptError) as refused:
        run_script(f"CREATE STREAM s {declaration} TIMESTAMP BY ts; SELECT 1 AS x FROM s")
    assert refused.value.message == answer
