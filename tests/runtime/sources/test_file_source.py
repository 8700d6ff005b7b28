"""Files: schemas, projection, order, dead rows, and what is refused."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from eddyline.errors import JobError, ScriptError
from eddyline.runtime.sources.csv import CsvFormat
from eddyline.runtime.sources.csv_text import CsvOptions
from eddyline.runtime.sources.file_source import FileSource
from eddyline.runtime.sources.source import Wanted
from tests.conftest import Ran, at
from tests.support.properties import examples

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


def test_folders_are_read_with_all_below_them(in_tmp: Path, run_script: Run, table: Table) -> None:
    names = ("b/c/1", "a/2", "3", "_hidden/4", ".hidden/5", "a/_6", "a/.7", "b/_temporary/8")
    for name in names:
        Path("d", name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table("k", (1, int(name[-1]))), f"d/{name}")
    Path("d/b/loop").symlink_to("..")
    script = "CREATE STREAM s USING parquet OPTIONS (path '{}') TIMESTAMP BY ts; SELECT k FROM s"
    for path, found in (
        ("d", [3, 2, 1]),
        ("d/**", [3, 2, 1]),
        ("d/[ab]", [2, 1]),
        ("d/_hidden", [4]),
        ("d/*/*", [2, 1]),
    ):
        if "**" in path:
            Path("d/b/loop").unlink()
        assert [row["k"] for row in run_script(script.format(path)).rows] == found
    with pytest.raises(ScriptError, match="no file matches"):
        run_script(script.format("d/_h*/*"))


def test_parquet_files_that_differ(in_tmp: Path, run_script: Run) -> None:
    Path("d").mkdir()
    times = {unit: pa.array([1_000 * 1_000 ** "smu".index(unit[0])], pa.timestamp(unit)) for unit in ("ms", "us")}
    pq.write_table(pa.table({"ts": times["us"], "k": pa.array([1], pa.int64()), "x": ["a"]}), "d/a.parquet")
    pq.write_table(pa.table({"TS": times["ms"], "k": pa.array([2], pa.int32())}), "d/b.parquet")
    script = "CREATE STREAM s {} USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT {} FROM s"
    declared = "(ts TIMESTAMP, k BIGINT, x VARCHAR, z BIGINT)"
    assert _rows(run_script(script.format(declared, "k, x")), "k", "x") == [(1, "a"), (2, None)]
    with pytest.raises(JobError, match=r"column ts is TIMESTAMP_MS in d/b.parquet but TIMESTAMP in d/a.parquet"):
        run_script(script.format("", "k"))
    pq.write_table(pa.table({"ts": times["us"]}), "d/b.parquet")
    assert _rows(run_script(script.format(declared, "x")), "x") == [("a",), (None,)]
    with pytest.raises(JobError, match=r"d/b.parquet has no column x, as d/a.parquet has; declare the columns"):
        run_script(script.format("", "x"))
    with pytest.raises(JobError, match=r"d/a.parquet has no column z; it has ts, k, x"):
        run_script(script.format(declared, "z"))


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
        JobError, match=r"column k is VARCHAR in d/b.parquet but BIGINT in d/a.parquet; declare the columns"
    ):
        run_script(script.format(""))
    ran = run_script(script.format("(ts TIMESTAMP, k BIGINT)"))
    assert (ran.summary.rows_used, ran.summary.rows_dead) == (1, 1)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("nowhere", "there is no file or folder nowhere"),
        ("x*.parquet", "no file matches x*.parquet to take the columns from; declare them"),
        ("empty", "empty holds no file to take the columns from; declare them"),
    ],
)
def test_wrong_paths_are_the_scripts_fault(in_tmp: Path, run_script: Run, path: str, answer: str) -> None:
    Path("empty").mkdir()
    for format_ in ("parquet", "csv", "json"):
        with pytest.raises(ScriptError) as refused:
            run_script(f"CREATE STREAM s USING {format_} OPTIONS (path '{path}') TIMESTAMP BY ts; SELECT ts FROM s")
        assert (refused.value.message, refused.value.line, refused.value.column) == (answer, 1, 33 + len(format_))


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_empty_files(in_tmp: Path, run_script: Run, format_: str) -> None:
    Path("d").mkdir()
    Path("d/a").write_text("")
    Path("b").write_text("\n")
    script = "CREATE STREAM s USING {} OPTIONS (path '{}') TIMESTAMP BY ts; SELECT ts FROM s"
    for path, what in (("d/a", "d/a is empty"), ("d", "every file of d is empty"), ("b", "b is empty")):
        with pytest.raises(ScriptError, match=f"{what}, there are no columns to take from it; declare them"):
            run_script(script.format(format_, path))


@pytest.mark.parametrize(
    "text", ['[{"ts": "2026-01-01", "k": 1}]', '[\n  {"ts": "2026-01-01"}\n]\n', '  [ {"k": 1},\n{"k": 2}]']
)
@pytest.mark.parametrize("columns", ["", "(ts TIMESTAMP)"])
def test_json_arrays(in_tmp: Path, run_script: Run, text: str, columns: str) -> None:
    Path("d").write_text(text)
    with pytest.raises(JobError, match="d is one JSON array; newline-delimited JSON is read: one object per line"):
        run_script(f"CREATE STREAM s {columns} USING json OPTIONS (path 'd') TIMESTAMP BY ts; SELECT ts FROM s")


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


@pytest.mark.parametrize(
    ("options", "header"),
    [
        ("", "time,key,x"),
        ("", "ts,k,amount"),
        ("", "TS,K"),
        ("", "x,k,t s,other"),
        (", header 'true'", "ts,k,amount"),
        (", header 'true'", "2026-01-01 00:00:01,1,0.5"),
    ],
)
def test_csv_a_header_that_lacks_declared_columns_is_refused(
    in_tmp: Path, run_script: Run, options: str, header: str
) -> None:
    Path("d").write_text(f"{header}\n2026-01-01 00:00:01,1,0.5\n")
    text = _CSV.replace("'d'", "'d'" + options) + "SELECT k FROM s"
    said = f"the header {header.replace(',', ', ')}, which lacks .*; the columns are ts, k, x. .* as every file"
    said = f"(seems to have {said} .*, or set header 'false'|has {said} names them$)"
    if header.startswith("2026"):
        said = r"begins with 2026.* declare the columns, \(ts TIMESTAMP, k BIGINT, x DOUBLE\), with header 'auto'"
    with pytest.raises(ScriptError, match=f"^line 1, column 15: d {said}"):
        run_script(text)
    Path("first").write_text("ts,k,x\n2026-01-01 00:00:01,1,0.5\n")
    two_files = text.replace("'d'", "'[df]*'").replace("SELECT k", "SELECT k, x")
    Path("d").rename("from")
    with pytest.raises(JobError, match=f"^from {said}"):
        run_script(two_files)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1767225601000,one,0.5", "column ts: '1767225601000' is not a value of type TIMESTAMP"),
        ("16.11.2026,1,0.5", "column ts: '16.11.2026' is not a value of type TIMESTAMP"),
        ("yesterday,1,0.5", "column ts: 'yesterday' is not a value of type TIMESTAMP"),
        (",,", "the event time is NULL or out of range: ts is NULL"),
    ],
)
def test_csv_a_first_line_that_is_an_unreadable_row_is_no_header(
    in_tmp: Path, run_script: Run, line: str, reason: str
) -> None:
    Path("d").write_text(f"{line}\n2026-01-01 00:00:01,1,0.5\n")
    ran = run_script(_CSV.replace(";", f" {_GRAVE};") + "SELECT k FROM s")
    assert (ran.rows, ran.summary.rows_dead, _reasons()) == ([{"k": 1}], 1, [reason])


def test_csv_header_false_means_position(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("time,key,x\n2026-01-01 00:00:01,1,0.5\n")
    ran = run_script(_CSV.replace("'d'", "'d', header 'false'") + "SELECT k FROM s")
    assert (ran.rows, ran.summary.rows_dead) == ([{"k": 1}], 1)


@pytest.mark.parametrize(("line", "is_data"), [("nm,city", False), ("nm,town", True), ("City,Name", False)])
def test_csv_a_header_of_texts(in_tmp: Path, run_script: Run, line: str, is_data: bool) -> None:
    Path("d").write_text("2026-01-01 00:00:01,1,0.5\n")
    Path("t").write_text(f"{line}\nBonn,Ada\n")
    text = _CSV + "CREATE TABLE t (name VARCHAR, city VARCHAR) USING csv OPTIONS (path 't'); SELECT name FROM s, t"
    if line == "nm,city":
        with pytest.raises(ScriptError, match="t seems to have the header nm, city, which lacks name;"):
            run_script(text)
        return
    assert _rows(run_script(text), "name") == ([("Bonn",), ("nm",)] if is_data else [("Ada",)])


def test_csv_a_header_with_a_column_twice_is_refused(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("ts,K,x,k,kK,KK\n2026-01-01 00:00:01,1,0.5,2,3,4\n")
    assert run_script(_CSV + "SELECT k FROM s").rows == [{"k": 2}]
    with pytest.raises(ScriptError, match="d names the column kk twice in its header ts, K, x, k, kK, KK"):
        run_script(_CSV.replace("k BIGINT", "kk BIGINT") + "SELECT kk FROM s")
    Path("d").write_text("ts,k,k\n2026-01-01 00:00:01,1,2\n")
    with pytest.raises(ScriptError, match="d names the column k twice in its header"):
        run_script("CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts; SELECT k FROM s")


def test_csv_files_of_which_one_lacks_a_column_that_nobody_needs(in_tmp: Path, run_script: Run) -> None:
    Path("d").mkdir()
    Path("d/1").write_text("ts,k,x\n2026-01-01 00:00:01,1,0.5\n")
    Path("d/2").write_text("K,ts\n2,2026-01-01 00:00:02\n")
    assert _rows(run_script(_CSV + "SELECT k FROM s"), "k") == [(1,), (2,)]
    undeclared = "CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts;"
    assert _rows(run_script(undeclared + "SELECT k FROM s"), "k") == [(1,), (2,)]
    with pytest.raises(
        JobError, match=r"d/2 has the header K, ts, which lacks x; .* declare them as every file names them$"
    ):
        run_script(undeclared + "SELECT k, x FROM s")


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
    dead = [json.loads(line) for line in next(Path("dead").iterdir()).read_text().splitlines()]
    assert sorted(row["reason"] for row in dead) == [
        "1 column where 3 were expected: 2026-01-01 00:00:04",
        "column k: 'three' is not a value of type BIGINT",
        "column ts: 'yesterday' is not a value of type TIMESTAMP",
        "not text in UTF-8",
        "the event time is NULL or out of range: ts is NULL",
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


_TEXT = "CREATE STREAM s (ts TIMESTAMP, t VARCHAR) USING csv OPTIONS (path 'd'{}) TIMESTAMP BY ts {}; SELECT t FROM s"
_GRAVE = "DEAD INTO grave; CREATE SINK grave USING json OPTIONS (path 'dead', mode 'overwrite')"


def _reasons() -> list[str]:
    return [json.loads(line)["reason"] for line in next(Path("dead").iterdir()).read_text().splitlines()]


@pytest.mark.parametrize(
    ("lines", "good", "dead"),
    [
        (["1", '"2', "3", "4"], ["1", "3", "4"], ['"2']),
        (["1", '"2', "3", '"4"', "5"], ["1", "3", "4", "5"], ['"2']),
        (["1", '"2'], ["1"], ['"2']),
        (['"2', "", ""], [], ['"2']),
        (['5" pipe', '"a ""b"" c"', '"x"y"', 'z"'], ['5" pipe', 'a "b" c', 'xy"', 'z"'], []),
        (['"a', 'b"', "c"], ['b"', "c"], ['"a']),
        (['"a', "", 'b",c', "d"], ["d"], ['"a', None]),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_csv_a_quote_that_is_not_closed_costs_its_own_line(
    in_tmp: Path, run_script: Run, lines: list[str], good: list[str], dead: list[str | None], end: str
) -> None:
    rows = [line and f"2026-01-01,{line}" for line in lines]
    Path("d").write_bytes((end.join(rows)).encode())
    ran = run_script(_TEXT.format("", _GRAVE))
    assert [row["t"] for row in ran.rows] == good
    assert ran.summary.rows_in == len(good) + len(dead)
    unclosed = [f"a quote that is not closed: 2026-01-01,{line}" for line in dead if line]
    assert [reason for reason in _reasons() if "quote" in reason] == unclosed


@given(st.text('ab,"\\\\\n\r', max_size=40), st.sampled_from(["", "\\"]), st.booleans())
@examples(300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_csv_no_line_vanishes(tmp_path: Path, text: str, escape: str, multi_line: bool) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode() + b"\nlast,row")
    schema = pa.schema([("a", pa.string()), ("b", pa.string())])
    layout = CsvOptions(header="false", escape=escape, multi_line=multi_line)
    source = FileSource(str(path), CsvFormat(str(path), schema, layout))
    chunks = list(source.read(Wanted.of(schema, schema.names, True)))
    lines = [line for line in re.split("[\r\n]", text) if line]
    rows = sum(c.rows.num_rows + (c.dead.num_rows if c.dead is not None else 0) for c in chunks)
    if not multi_line:
        assert rows == len(lines) + 1
    assert rows <= len(lines) + 1
    if '"' not in text and not escape:
        good = [line.split(",") for line in lines if line.count(",") == 1] + [["last", "row"]]
        found = pa.Table.from_batches([c.rows for c in chunks]).to_pylist()
        assert found == [{"a": a or None, "b": b or None} for a, b in good]


def test_csv_multi_line(in_tmp: Path, run_script: Run) -> None:
    long = "\n".join(["x" * 1000] * 3000)
    rows = ["a\nb", "c", "d\r\n\n,e", long, "f"] * 2
    Path("d").write_bytes(
        "\n".join(f'2026-01-01,"{row}"' for row in rows).encode() + b'\n2026-01-01,"never\n2026-01-01,g'
    )
    ran = run_script(_TEXT.format(", multiLine true", _GRAVE))
    assert [row["t"] for row in ran.rows] == [*rows, "g"]
    assert _reasons() == ['a quote that is not closed: 2026-01-01,"never']


def test_csv_escapes(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text('2026-01-01,"a\\"b"\n2026-01-01,"c\\"\n2026-01-01,d\\\n2026-01-01,e\n')
    assert [row["t"] for row in run_script(_TEXT.format(", escape '\\'", "")).rows] == ['a"b', "e"]
    Path("d").write_text('2026-01-01,"a""b"\n')
    assert [row["t"] for row in run_script(_TEXT.format(", escape '\"'", "")).rows] == ['a"b']


@pytest.mark.parametrize("option", ["", ", multiLine true"])
def test_csv_with_a_long_line(in_tmp: Path, run_script: Run, option: str) -> None:
    Path("d").write_text('2026-01-01,a\n2026-01-01,"' + "x" * 20_000_000 + '"\n2026-01-01,b\n')
    assert [len(row["t"]) for row in run_script(_TEXT.format(option, "")).rows] == [1, 20_000_000, 1]


def test_csv_rows_that_are_neither_complete_nor_text(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_bytes(b"2026-01-01,a\n2026-01-01,\xff,c\n2026-01-01\n2026-01-01,\xff\n2026-01-01,b\n")
    ran = run_script(_TEXT.format("", _GRAVE))
    assert ([row["t"] for row in ran.rows], ran.summary.rows_dead) == (["a", "b"], 3)
    assert "not 2 columns, nor text in UTF-8: 2026-01-01,\ufffd,c" in _reasons()


def test_csv_with_many_quotes_over_many_blocks(in_tmp: Path, run_script: Run) -> None:
    lines = [f'2026-01-01,"{i:050}' + ("" if i % 1000 == 7 else '"') for i in range(50_000)]
    Path("d").write_text("\n".join(lines))
    ran = run_script(_TEXT.format("", ""))
    assert (ran.summary.rows_in, ran.summary.rows_dead, ran.summary.rows_out) == (50_000, 50, 49_950)


def test_csv_without_header_or_declared_columns(in_tmp: Path, run_script: Run) -> None:
    Path("d").write_text("\n2026-01-01 00:00:00,1\n2026-01-02 00:00:00,2\n")
    ran = run_script("CREATE STREAM s USING csv OPTIONS (path 'd', header false) TIMESTAMP BY _c0; SELECT _c1 FROM s")
    assert [row["_c1"] for row in ran.rows] == [1, 2]


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
    assert "column k: 'many' is not a value of type BIGINT" in reasons
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
            "USING orc OPTIONS (path 't')",
            "the local engine does not read 'orc'; --engine spark does",
        ),
        ("USING parquet", "parquet needs an option path, as in OPTIONS (path 'data/s')"),
        ("USING parquet OPTIONS (pth 'x', path 'd')", "parquet has no option 'pth'; did you mean 'path'?"),
        ("USING csv OPTIONS (path 'd', header 'maybe')", "option header is auto or true or false, not 'maybe'"),
        ("USING csv OPTIONS (path 'd', sep '||')", "option sep is one character, not '||'"),
        ("(t TIME) USING csv OPTIONS (path 'd')", "column t: a value of type TIME cannot be read from csv"),
    ],
)
def test_wrong_declarations(in_tmp: Path, run_script: Run, declaration: str, answer: str) -> None:
    Path("d").write_text("")
    with pytest.raises(ScriptError) as refused:
        run_script(f"CREATE STREAM s {declaration} TIMESTAMP BY ts; SELECT 1 AS x FROM s")
    assert refused.value.message == answer


def test_parquet_tables_with_files_that_lack_every_column_of_the_query(in_tmp: Path, run_script: Run) -> None:
    Path("d").mkdir()
    pq.write_table(pa.table({"x": [1]}), "d/a.parquet")
    pq.write_table(pa.table({"y": [[1], [2]]}), "d/b.parquet")
    pq.write_table(pa.table({"ts": [at(0)], "k": [1]}), "s.parquet")
    script = (
        "CREATE STREAM s USING parquet OPTIONS (path 's.parquet') TIMESTAMP BY ts;"
        "CREATE TABLE t (x BIGINT, y BIGINT) USING parquet OPTIONS (path 'd'); SELECT {} FROM s, t"
    )
    assert _rows(run_script(script.format("x")), "x") == [(1,), (None,), (None,)]
    with pytest.raises(JobError, match=r"column y is BIGINT\[\] in d/b.parquet, which cannot be read as BIGINT"):
        run_script(script.format("y"))
