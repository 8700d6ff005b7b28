"""Scripts are checked before anything is started: `validate`, `explain` and `run` know mistakes without a JVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.state.log.sealed import sealed, unsealed

_STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING {format} OPTIONS (path 'in') TIMESTAMP BY ts;\n"
_SINK = "CREATE SINK out USING parquet OPTIONS (path 'out');\n"
_INSERT = "INSERT INTO out SELECT k FROM s [RANGE 1 MINUTE];"
_UNDECLARED = "CREATE STREAM s USING orc OPTIONS (path 'in') TIMESTAMP BY ts;\n" + _SINK + _INSERT
_KAFKA = (
    "CREATE STREAM s USING kafka OPTIONS (servers 'x:9092', topic 't', format 'raw') TIMESTAMP BY timestamp;\n"
    "SELECT partition FROM s [RANGE 1 MINUTE];"
)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests fail if a JVM is asked for: there is none."""
    for name in ("JAVA_HOME", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")


def _written(folder: Path, text: str) -> str:
    (folder / "job.sql").write_text(text)
    return "job.sql"


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            _STREAM.format(format="orc") + _SINK + _INSERT,
            [],
            "job.sql is right for Spark; checked: 1 stream, 1 sink, the query, the settings\n",
        ),
        (_KAFKA, [], "job.sql is right for Spark; checked: 1 stream, the query, the settings\n"),
        (
            _UNDECLARED,
            [],
            "job.sql is right for Spark; checked: 1 sink, the settings; not checked: s and the query, because only"
            " Spark knows the columns (declare them, as in CREATE STREAM s (ts TIMESTAMP, ...), to check it too)\n",
        ),
        (
            "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; SELECT k FROM s",
            ["--engine", "local"],
            "job.sql is right for the local engine; checked: 1 stream, the query, the settings\n",
        ),
    ],
)
def test_what_was_checked(
    text: str, more: list[str], said: str, in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", _written(in_tmp, text), *more]) == 0
    assert capsys.readouterr().out == said
    assert sorted(path.name for path in in_tmp.iterdir()) == ["job.sql"]


_ORC = _STREAM.format(format="orc")


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize(
    ("text", "more", "answer"),
    [
        (_ORC + "SELECT kk FROM s;", [], "line 2, column 8: there is no column 'kk'"),
        (
            _ORC.replace("orc", "avro") + "SELECT k FROM s;",
            [],
            "'avro' needs a connector: add --conf spark.jars.packages=",
        ),
        (_KAFKA.replace("s USING", "s (k BIGINT) USING"), [], "column k: a message has key, value"),
        (_KAFKA.replace("partition", "partitio"), [], "no column 'partitio'; did you mean 'partition'?"),
        (_KAFKA.replace("servers", "kafka.bootstrap.servers"), [], "kafka needs an option servers, as in"),
        (_UNDECLARED.replace("path 'out'", "path 'in/out'"), [], "the path 'in/out' is, contains or lies in 'in'"),
        (_UNDECLARED.replace("path 'out'", "pth 'out'"), [], "parquet has no option 'pth'; did you mean 'path'?"),
        (_ORC.replace("orc", "cro") + "SELECT k FROM s;", [], "Spark has no format 'cro'; did you mean 'orc'?"),
        (_ORC + "SELECT k FROM s;", ["--set", "plan=(s t)"], "plan=(s t): "),
        (_ORC + "SELECT k FROM s;", ["--set", "at_end=keep"], "at_end=keep needs --checkpoint"),
        (_STREAM.format(format="parquet") + "SELECT k FROM s;", [], "line 1, column 65: there is no file"),
        (_ORC + "SELECT k FROM s;", ["--engine", "local"], "the local engine does not read 'orc'; --engine spark does"),
    ],
)
def test_what_is_wrong_is_known_without_a_jvm(
    command: str, text: str, more: list[str], answer: str, in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, _written(in_tmp, text), *more]) == 2
    said = capsys.readouterr()
    assert answer in said.err.splitlines()[0]
    assert not said.out


def test_a_checkpoint_of_another_job(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;\n"
    _written(in_tmp, stream + "SELECT k FROM s")
    assert main(["run", "job.sql", "--engine", "local", "--checkpoint", "ck"]) == 0
    before = sorted(in_tmp.rglob("*"))
    assert main(["validate", "job.sql", "--checkpoint", "ck", "--engine", "local"]) == 0
    assert "the checkpoint ck" in capsys.readouterr().out
    _written(in_tmp, stream + "SELECT k + 1 AS k FROM s")
    assert main(["validate", "job.sql", "--checkpoint", "ck"]) == 2
    assert "does not fit: query was" in capsys.readouterr().err
    assert sorted(in_tmp.rglob("*")) == before


def test_a_checkpoint_that_is_finished(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; SELECT k FROM s"
    run = ["run", _written(in_tmp, text), "--engine", "local", "--checkpoint", "ck"]
    for more, finished in (([], False), (["--final"], True)):
        assert main([*run, *more]) == 0
        capsys.readouterr()
        assert main(["validate", "job.sql", "--checkpoint", "ck", "--engine", "local"]) == 0
        said = "the checkpoint ck is finished: a run would do nothing, and new rows would be refused"
        assert (said in capsys.readouterr().out) == finished


def test_explain_for_the_engine_that_would_run_it(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", _written(in_tmp, _ORC + "SELECT k FROM s;")]) == 0
    assert "stream s" in capsys.readouterr().out
    assert main(["explain", _written(in_tmp, _UNDECLARED)]) == 2
    wanted = "eddyline: only Spark knows the columns of s; declare them in the script to see its plan\n"
    assert capsys.readouterr().err == wanted
    assert main(["explain", "job.sql", "--engine", "local"]) == 2
    assert "the local engine does not read 'orc'; --engine spark does" in capsys.readouterr().err


_ASKED = """\
CREATE STREAM orders (ts TIMESTAMP, user_id BIGINT, sku VARCHAR) USING {format} OPTIONS ({options}) TIMESTAMP BY ts;
CREATE TABLE users (id INTEGER, name VARCHAR) USING postgres OPTIONS (url_env 'PG_URL', table 'users')
    SCAN INDEX ON (id) INDEX ON (name);
CREATE TABLE prices (sku VARCHAR, price DOUBLE) USING http OPTIONS (url 'http://localhost:8080/price?sku={{sku}}')
    INDEX ON (sku);
SELECT u.name, p.price FROM orders [RANGE 1 MINUTE] AS o, users AS u, prices AS p
WHERE o.user_id = u.id AND p.sku = o.sku;
"""


@pytest.mark.parametrize(
    ("engine", "name", "script"),
    [
        ("local", "the local engine", _ASKED.format(format="generate", options="rows 3")),
        ("spark", "Spark", _ASKED.format(format="orc", options="path 'in'")),
    ],
)
def test_tables_that_are_asked(
    engine: str,
    name: str,
    script: str,
    in_tmp: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = [_written(in_tmp, script), "--engine", engine]
    assert main(["validate", *arguments]) == 2
    assert "url_env names the environment variable PG_URL, which is not set" in capsys.readouterr().err
    monkeypatch.setenv("PG_URL", "postgresql://nobody@localhost/nothing")
    assert main(["validate", *arguments]) == 0
    assert (
        capsys.readouterr().out
        == f"""\
job.sql is right for {name}; checked: 1 stream, 2 tables, the query, the settings
u: scan
u: index on (id), bound by o.user_id
u: index on (name), not bound by this query
p: index on (sku), bound by o.sku
"""
    )
    assert main(["explain", *arguments]) == 0
    wanted = """
u: table users
  access: scan
  access: index on (id), bound by o.user_id
  access: index on (name), not bound by this query
  hash index on CAST(u.id AS BIGINT)
  keeps u.name

p: table prices
  access: index on (sku), bound by o.sku
  hash index on p.sku
  keeps p.price
"""
    assert wanted in capsys.readouterr().out
    _written(in_tmp, script.replace(" AND p.sku = o.sku", ""))
    for command in ("validate", "explain", "run"):
        assert main([command, *arguments]) == 2
        said = (
            "eddyline: line 6, column 71: table 'prices' is reached by its index on (sku), and nothing in WHERE binds"
            " sku; write p.sku = ..., or declare SCAN"
        )
        assert capsys.readouterr().err.splitlines()[0] == said


def test_checks_import_neither_pyspark_nor_compiled_kernels(in_tmp: Path) -> None:
    """Each of these takes as long to import as all else together."""
    text = _ORC + "SELECT kk FROM s;"
    code = (
        "import sys; from eddyline.cli.main import main; main(['run', sys.argv[1]]);"
        "print([name for name in ('pyspark', 'numba', 'pandas') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code, _written(in_tmp, text)], capture_output=True, text=True)
    assert "no column 'kk'" in ran.stderr
    assert ran.stdout == "[]\n"


@pytest.mark.long
@pytest.mark.long
def test_a_run_without_a_folder_for_kernels_says_so_once(in_tmp: Path) -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;"
    (in_tmp / "x.sql").write_text(f"{stream} SELECT k FROM s")
    command = [sys.executable, "-m", "eddyline.cli", "run", "x.sql", "--engine", "local"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": "/proc/nowhere", "HOME": "/proc/nowhere"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    first, last = ran.stderr.splitlines()
    assert first.startswith("every run compiles the kernels") and last.startswith("done: ")


@pytest.mark.long
def test_a_local_run_does_without_pandas_and_says_that_it_compiles(in_tmp: Path) -> None:
    stream = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;"
    (in_tmp / "x.sql").write_text(f"{stream} SELECT k FROM s")
    command = [sys.executable, "-X", "importtime", "-m", "eddyline.cli", "run", "x.sql", "--engine", "local"]
    for known in (False, True):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(in_tmp / "cache")}
        ran = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert ran.returncode == 0 and "numba" in ran.stderr
        assert not any(name in ran.stderr for name in ("pandas.core", "rich.console", "prometheus_client"))
        assert ("compiling the kernels" in ran.stderr) == (not known)


def _flipped(file: Path) -> None:
    body = bytearray(file.read_bytes())
    body[-10] ^= 1
    file.write_bytes(body)


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    ("what", "answer"),
    [
        ("format", "has format 4, and this version has format"),
        ("checkpoint.json", "the checkpoint is damaged: checkpoint.json does not match its checksum"),
        ("commits/*", "the checkpoint is damaged: commits/00000001 does not match its checksum"),
        ("decided", "the checkpoint is damaged: decided/00000001 is a copy of commits/00000001"),
        ("engine", "is of the local engine: go on with it there"),
    ],
)
def test_a_checkpoint_that_cannot_be_continued_is_refused_before_spark_starts(
    what: str, answer: str, declared: bool, in_tmp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also if only Spark knows the columns of the streams."""
    made = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts; SELECT k FROM s"
    assert main(["run", _written(in_tmp, made), "--engine", "local", "--checkpoint", "ck"]) == 0
    if what == "format":
        about = in_tmp / "ck/checkpoint.json"
        about.write_bytes(sealed(json.dumps(json.loads(unsealed(about.read_bytes())) | {"format": 4}).encode()))
    elif what == "decided":
        newest = max((in_tmp / "ck/commits").iterdir())
        newest.rename(in_tmp / "ck/decided" / newest.name)  # batch 1 has begun, and the file is another one
    elif what != "engine":
        _flipped(max(in_tmp.glob(f"ck/{what}")))
    capsys.readouterr()
    _written(in_tmp, made if declared else _UNDECLARED)
    for command in ("validate", "run"):
        assert main([command, "job.sql", "--checkpoint", "ck"]) > 0
        said = capsys.readouterr()
        assert answer in said.err and said.err.count("\n") == 1 and not said.out
