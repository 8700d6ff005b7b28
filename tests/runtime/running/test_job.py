"""Jobs with tables that are asked: what is prepared, and what is refused before a row is read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.cql.script import parse
from eddyline.errors import ScriptError
from eddyline.protocol.outlet import Outlet
from eddyline.runtime.running.check import about
from eddyline.runtime.running.checkpointed_job import CheckpointedJob
from eddyline.runtime.running.job import Job, check_without_columns, explain, prepare
from eddyline.runtime.running.spec import Spec
from eddyline.runtime.sinks.file_sink import FileSink
from eddyline.settings import Settings
from eddyline.spark.checks import check, open_spark_sink, opener

_SCRIPT = """
CREATE STREAM s (k BIGINT, ts TIMESTAMP) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;
CREATE TABLE t (id BIGINT, name VARCHAR, zip INTEGER, x DOUBLE) USING {format} OPTIONS (path 'u.db', table 'users')
    SCAN INDEX ON (ID) INDEX ON (zip, id) DEAD INTO failed;
CREATE SINK failed USING json OPTIONS (path 'failed');
SELECT a.name FROM s, t AS a, t AS b WHERE s.k = a.id AND a.id = b.id AND b.x > 3;
"""


@pytest.fixture(autouse=True)
def database(in_tmp: Path) -> None:
    (in_tmp / "u.db").touch()


def job(format: str = "sqlite") -> Job:
    return prepare(_SCRIPT.format(format=format), out=io.StringIO())


@pytest.mark.parametrize("format", ["sqlite", "duckdb"])
def test_a_table_that_is_asked_has_no_source(format: str, in_tmp: Path) -> None:
    made = job(format)
    assert [i.name for i in made.inputs] == ["s"]
    (table,) = made.asked
    assert table.declaration.name == table.stream.name == "t"
    assert table.columns == ("id", "name", "zip", "x"), "those of the query, of both aliases, and of all indexes"
    assert [method.columns for method in table.stream.methods] == [(), ("id",), ("zip", "id")]
    assert table.schema == pa.schema(
        [("id", pa.int64()), ("name", pa.string()), ("zip", pa.int32()), ("x", pa.float64())]
    )
    assert isinstance(table.dead, FileSink) and table.dead in made.sinks


def test_columns_that_nobody_uses_are_not_asked_for(in_tmp: Path) -> None:
    text = _SCRIPT.format(format="sqlite").replace("a.name", "s.k").replace("(zip, id)", "(x, id)")
    assert prepare(text, out=io.StringIO()).asked[0].columns == ("id", "x")


def test_both_engines_know_the_tables(in_tmp: Path) -> None:
    made, unknown = check(_SCRIPT.format(format="sqlite"), 0, {}, False, io.StringIO())
    assert (
        made is not None
        and [table.columns for table in made.asked] == [table.columns for table in job().asked]
        and unknown == ()
    )


def test_a_query_from_python_tells_how_tables_are_asked(in_tmp: Path) -> None:
    query = el.query(_SCRIPT.format(format="sqlite"))
    assert "access: index on (id), bound by s.k" in query.explain()


@pytest.mark.parametrize(
    ("replaced", "by", "message"),
    [
        ("path 'u.db', ", "", "sqlite needs an option path, as in OPTIONS (path 'small.db')"),
        ("table 'users'", "tabel 'users'", "sqlite has no option 'tabel'"),
        ("table 'users'", "table 'users', concurrency 0", "option concurrency"),
    ],
)
def test_options_are_checked_before_a_row_is_read(replaced: str, by: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        prepare(_SCRIPT.format(format="sqlite").replace(replaced, by))
    assert caught.value.message.startswith(message) and caught.value.line == 3


@pytest.mark.parametrize(
    ("format", "message"),
    [
        ("sqlit", "no table can be asked in 'sqlit'; did you mean 'sqlite'?"),
        ("parquet", "a table in 'parquet' is read whole; leave INDEX ON, DEAD INTO and OPTIONS of SCAN out"),
        ("kafka", "a table in 'kafka' is read whole; leave INDEX ON, DEAD INTO and OPTIONS of SCAN out"),
    ],
)
def test_formats(format: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        job(format)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, 3, 71)


def test_a_scan_by_a_file_or_by_spark_reads_the_table_whole(in_tmp: Path) -> None:
    pq.write_table(pa.table({"id": pa.array([1]), "name": ["Ada"], "zip": pa.array([1], pa.int32()), "x": [4.0]}), "u")
    methods = "SCAN INDEX ON (ID) INDEX ON (zip, id) DEAD INTO failed"
    text = _SCRIPT.format(format="parquet").replace("path 'u.db', table 'users'", "path 'u'")
    made = prepare(text.replace(methods, "SCAN"), out=io.StringIO())
    assert [i.name for i in made.inputs] == ["s", "t"] and not made.asked
    assert made.query == prepare(text.replace(methods, ""), out=io.StringIO()).query
    rows = el.query(text.replace(methods, "SCAN")).start(engine="local", checkpoint=str(in_tmp / "checkpoint"))
    assert rows.to_arrow().column_names == ["name"]
    with pytest.raises(ScriptError, match="no table can be asked in 'sqlit'; did you mean 'sqlite'"):
        prepare(text.replace(methods, "SCAN").replace("parquet", "sqlit"))


def test_a_table_without_methods_in_such_a_format() -> None:
    text = _SCRIPT.format(format="sqlite").replace("SCAN INDEX ON (ID) INDEX ON (zip, id) DEAD INTO failed", "")
    with pytest.raises(ScriptError, match="a table in sqlite is asked for its rows; write SCAN, INDEX ON"):
        prepare(text)


@pytest.mark.parametrize("make", [prepare, explain])
def test_a_table_that_cannot_be_reached_is_refused_at_its_place(make: object) -> None:
    text = _SCRIPT.format(format="sqlite").replace("SCAN", "").replace("AND a.id = b.id", "")
    assert callable(make)
    with pytest.raises(ScriptError) as caught:
        make(text)
    wanted = (
        "table 't' is reached by its indexes on (id) and (zip, id), and nothing in WHERE binds id or zip; write b.id"
        " = ..., or declare SCAN"
    )
    assert (caught.value.message, caught.value.line, caught.value.column) == (wanted, 6, 31)


def test_streams_that_only_a_table_joins_have_no_partial_rows() -> None:
    text = """CREATE STREAM s (k BIGINT, ts TIMESTAMP) USING generate OPTIONS (rows 1) TIMESTAMP BY ts;
        CREATE TABLE t (id BIGINT, x BIGINT) USING http OPTIONS (url 'http://localhost/{id}') INDEX ON (id);
        SELECT PARTIAL a.k FROM s AS a, s AS b, t WHERE a.k = t.id AND b.k = t.x"""
    with pytest.raises(ScriptError, match="SELECT PARTIAL joins b with a before a table has answered") as caught:
        prepare(text)
    assert (caught.value.line, caught.value.column) == (3, 41)


def test_where_only_spark_knows_the_columns_of_another_source() -> None:
    text = _SCRIPT.format(format="sqlite").replace("s (k BIGINT, ts TIMESTAMP) USING generate", "s USING orc")
    assert check(text, 0, {}, False, io.StringIO()) == (None, ("s",))
    with pytest.raises(ScriptError, match="no table can be asked in 'sqlit'"):
        sinks = lambda *more: open_spark_sink({}, *more)  # noqa: E731
        check_without_columns(text.replace("sqlite", "sqlit"), 0, opener({}, False), sinks, None)


def test_the_spec_carries_the_methods_and_the_dead_output(in_tmp: Path) -> None:
    made = CheckpointedJob(job(), Settings(), 1, str(in_tmp / "ck"), None)
    spec = Spec(**json.loads(made.spec.as_json()))
    assert spec.query == job().query
    assert spec.query.sources[1].stream.methods == job().query.sources[1].stream.methods
    assert Outlet("dead", "t") in made.sinks
    assert spec.schema("t").names == ["id", "name", "zip", "x"]


def test_a_checkpoint_tells_loaded_tables_from_asked_ones(in_tmp: Path) -> None:
    made = job()
    known = about(parse(made.text), made.query, 256)["stream"]
    assert '"asked": true' in known["t"] and "asked" not in known["s"]
