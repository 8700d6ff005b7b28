"""The command line: answers, exit status, one line for what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import eddyline
from eddyline.cli.main import main
from eddyline.extras import install

_STREAM = (
    "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate "
    "OPTIONS (rows 3, k.distribution sequence) TIMESTAMP BY ts;\n"
)
_KEYS = {
    "rows_in", "rows_out", "rows_late", "rows_dead", "seconds", "start_seconds", "plan", "decisions", "migrations",
    "rows_used", "expression_errors", "first_error", "peak_state_rows", "peak_memory_bytes", "spilled_rows", "warnings",
}  # fmt: skip


@pytest.fixture
def script(in_tmp: Path) -> Path:
    """A script that prints three rows."""
    path = in_tmp / "job.sql"
    path.write_text(_STREAM + "SELECT k FROM s;\n")
    return path


def test_run(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(script), "--engine", "local"]) == 0
    said = capsys.readouterr()
    assert said.out == "k\n-\n0\n1\n2\n"
    assert said.err.startswith("done: 3 rows in, 3 rows out in ")


def test_json_is_last_and_complete(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(script), "--json", "--set", "seed=4", "--progress", "--engine", "local"]) == 0
    said = capsys.readouterr()
    summary = json.loads(said.out.splitlines()[-1])
    assert set(summary) >= _KEYS
    assert (summary["rows_in"], summary["rows_out"], summary["rows_used"]) == (3, 3, 3)
    assert "3 rows in | " in said.err


def test_explain(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(script)]) == 0
    assert "stream s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "answer"),
    [
        (["run", "none.sql"], 2, "eddyline: cannot read the script none.sql: No such file or directory"),
        (
            ["run", "job.sql", "--set", "routr=x"],
            2,
            "eddyline: there is no setting 'routr' (from --set); did you mean router?",
        ),
        (
            ["run", "job.sql", "--config", "x.toml"],
            2,
            "eddyline: cannot read the settings in x.toml: No such file or directory",
        ),
        (["run", "job.sql", "--engine", "flink"], 2, "eddyline: --engine is local or spark, not 'flink'"),
        (
            ["run", "job.sql", "--follow", "--final"],
            2,
            "eddyline: --follow waits for more rows, --final says that there are none: leave one out",
        ),
        (["run", "job.sql", "--engine", "local", "--conf", "a=b"], 2, "eddyline: --conf is for --engine spark"),
        (["run", "job.sql", "--conf", "a"], 2, "eddyline: --conf a: it is SPARK_KEY=VALUE"),
        (
            ["run", "job.sql", "--set", "packet=many"],
            2,
            "eddyline: setting packet (from --set): 'many' is not a whole number of at least 1\n",
        ),
        (["run", "job.sql", "--udf", "no_such_module"], 2, "eddyline: --udf no_such_module: ModuleNotFoundError: "),
        (
            ["run", "job.sql", "--udf", "./no_such_file"],
            2,
            "eddyline: --udf ./no_such_file: there is no file no_such_f",
        ),
        (
            ["run", "job.sql", "--udf", "no_such_file.py"],
            2,
            "eddyline: --udf no_such_file.py: there is no file no_such",
        ),
        (["run", "job.sql", "--udf", "leaves.py"], 2, "eddyline: --udf leaves.py: SystemExit: 7\n"),
        (["run", "job.sql", "--udf", "./fails"], 2, "eddyline: --udf ./fails: ValueError: two lines\n"),
    ],
)
def test_refusals(
    script: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, answer: str
) -> None:
    Path("leaves.py").write_text("import sys\nsys.exit(7)\n")
    Path("fails.py").write_text("raise ValueError('two\\nlines')\n")
    assert main(arguments) == status
    said = capsys.readouterr()
    assert said.err.startswith(answer)
    assert len(said.err.splitlines()) == 1
    assert said.out == ""


def test_wrong_script_shows_the_place(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(_STREAM + "SELECT j FROM s;\n")
    assert main(["run", str(script), "--engine", "local"]) == 2
    answer, line, caret = capsys.readouterr().err.splitlines()
    assert answer.startswith("eddyline: line 2, column 8: ")
    assert (line, caret) == ("  SELECT j FROM s;", "         ^")


def test_missing_path_is_exit_2_and_broken_file_exit_1(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("CREATE STREAM s USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT ts FROM s")
    assert main(["run", str(script), "--engine", "local"]) == 2
    assert "there is no file or folder d" in capsys.readouterr().err
    Path("d").write_text("no parquet")
    assert main(["run", str(script), "--engine", "local"]) == 1
    assert capsys.readouterr().err.startswith("eddyline: d cannot be read as parquet: ")


def test_no_arguments_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert main(["--help"]) == 0
    assert "explain" in capsys.readouterr().out


def test_a_bug_asks_for_a_report(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eddyline.protocol.in_process.InProcess.run", lambda *args: 1 // 0)
    assert main(["run", str(script), "--engine", "local"]) == 1
    said = capsys.readouterr().err
    assert "please report it" in said
    assert "Traceback" not in said
    monkeypatch.setenv("EDDYLINE_DEBUG", "1")
    assert main(["run", str(script), "--engine", "local"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["my_functions", "./my_functions", "my_functions.py"])
def test_udf_modules(name: str, script: Path) -> None:
    Path("my_functions.py").write_text(
        "import pyarrow as pa\nimport pyarrow.compute as pc\nimport eddyline as el\n\n\n"
        "@el.udf(returns=pa.int64())\ndef twice(x):\n    return pc.multiply(x, 2)\n"
    )
    script.write_text(_STREAM + "SELECT twice(k) AS t FROM s WHERE twice(k) > 0;\n")
    name = str(Path(name).resolve()) if name.endswith(".py") else name
    done = _eddyline("run", str(script), "--udf", name, "--engine", "local")
    assert (done.returncode, done.stdout) == (0, "t\n-\n2\n4\n")


def test_a_udf_module_that_is_broken(script: Path) -> None:
    Path("broken.py").write_text("1 // 0\n")
    done = _eddyline("run", str(script), "--udf", "broken")
    assert (done.returncode, done.stderr) == (
        2,
        "eddyline: --udf broken: ZeroDivisionError: integer division or modulo by zero\n",
    )


def test_settings_from_the_environment(script: Path) -> None:
    done = _eddyline("run", str(script), environ={"EDDYLINE_ROUTER": "ranc"})
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "eddyline: setting router (from EDDYLINE_ROUTER): 'ranc' is not one of auto, fixed, random, lottery, rank, "
        "benefit; did you mean rank?\n"
    )


def test_unknown_variables_are_told(script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setenv("EDDYLINE_BOGUS", "1")
    monkeypatch.setenv("EDDYLINE_ROUTR", "random")
    monkeypatch.setenv("EDDYLINE_FULL", "1")
    assert main(["explain", str(script)]) == 0
    assert capsys.readouterr().err == (
        "warning: the environment variable EDDYLINE_BOGUS has no meaning\n"
        "warning: the environment variable EDDYLINE_ROUTR has no meaning; did you mean EDDYLINE_ROUTER?\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"eddyline {eddyline.__version__}\n"


def test_state_that_never_expires_is_told(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(_STREAM + "SELECT a.k FROM s a, s [ROWS 5] b WHERE a.k = b.k;\n")
    assert main(["run", str(script), "--json", "--engine", "local"]) == 0
    said = capsys.readouterr()
    warning = "rows of a never expire: give it a RANGE or ROWS window, or bound its time in WHERE"
    assert said.err.splitlines()[0] == f"warning: {warning}"
    assert json.loads(said.out.splitlines()[-1])["warnings"] == [warning]


def test_what_a_function_said_first(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("says.py").write_text(
        "import eddyline as el\n\n\n@el.udf(returns='BIGINT')\ndef says(x):\n    raise ValueError('no good')\n"
    )
    script.write_text(_STREAM + "SELECT says(k) AS t FROM s;\n")
    assert main(["run", str(script), "--udf", "says.py", "--json", "--engine", "local"]) == 0
    said = capsys.readouterr()
    assert "3 values could not be computed and are NULL (first: " in said.err
    assert "no good" in said.err
    assert "no good" in json.loads(said.out.splitlines()[-1])["first_error"]


def test_json_of_a_job_that_fails(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text(_STREAM + "SELECT a.k FROM s a, s b WHERE a.k = b.k;\n")
    assert main(["run", str(script), "--json", "--set", "memory=10", "--set", "spill=off", "--engine", "local"]) == 1
    said = capsys.readouterr()
    summary = json.loads(said.out.splitlines()[-1])
    assert set(summary) >= _KEYS
    assert summary["rows_in"] == 3
    assert summary["error"].startswith("the state takes ")
    assert said.err.splitlines()[-1] == f"eddyline: {summary['error']}"

    script.write_text("CREATE STREAM s USING parquet OPTIONS (path 'd') TIMESTAMP BY ts; SELECT ts FROM s")
    Path("d").write_text("no parquet")
    assert main(["run", str(script), "--json", "--engine", "local"]) == 1
    assert json.loads(capsys.readouterr().out)["error"].startswith("d cannot be read as parquet: ")


@pytest.mark.parametrize(
    ("command", "status", "answer"),
    [
        ("run job.sql --engine local >/dev/full", 1, "No space left on device"),
        ("explain job.sql >/dev/full", 1, "No space left on device"),
        ("run job.sql --engine local --json >/dev/full", 1, "No space left on device"),
        ("run job.sql --engine local >&-", 1, "Bad file descriptor"),
        ("explain job.sql >&-", 1, "Bad file descriptor"),
        ("run - <&-", 2, "standard input is closed"),
    ],
)
def test_output_that_cannot_be_written(script: Path, command: str, status: int, answer: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m eddyline.cli {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (status, 1), done.stderr
    assert done.stderr.startswith("eddyline: cannot ")
    assert answer in done.stderr


@pytest.mark.long
def test_nobody_needs_to_listen(script: Path) -> None:
    for where in ("2>&-", "2>/dev/full"):
        command = f"{sys.executable} -m eddyline.cli run job.sql --engine local --progress {where}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "k\n-\n0\n1\n2\n")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_before_the_job_runs(script: Path, number: signal.Signals, status: int) -> None:
    Path("waits.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(60)\n")
    with subprocess.Popen(
        [sys.executable, "-m", "eddyline.cli", "run", str(script), "--udf", "waits"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (status, "", "eddyline: interrupted\n")


def test_a_closed_pipe_is_no_drama(script: Path) -> None:
    script.write_text(_STREAM.replace("rows 3", "rows 300000") + "SELECT k FROM s;\n")
    command = f"{sys.executable} -m eddyline.cli run {script} --engine local | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("k", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_stopped_says_so_in_one_line(script: Path, number: signal.Signals) -> None:
    script.write_text(
        _STREAM.replace("rows 3", "rate 1000").replace("SELECT", "")
        + "CREATE SINK out USING parquet OPTIONS (path 'out', rows_per_file 1000); INSERT INTO out SELECT k FROM s;"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "eddyline.cli", "run", str(script), "--json", "--engine", "local"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for _ in range(3000):
            if list(Path().glob("out/part-*")):
                break
            time.sleep(0.1)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 128 + number
    assert err.startswith("stopped: ") and err.count("\n") == 1
    summary = json.loads(out)
    assert summary["stopped"]
    assert pq.read_table("out").num_rows == summary["rows_out"] == summary["rows_in"] > 0


def test_spark_is_the_default_and_needs_java_and_pyspark(
    script: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [name for name in sys.modules if name.startswith("eddyline.spark")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["run", str(script)]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("eddyline: Spark needs PySpark (")
    assert said.endswith(f"; type: {install('spark')}, or use --engine local")
    monkeypatch.undo()
    done = _eddyline("run", str(script), environ={"PATH": str(script.parent)}, without=("JAVA_HOME",))
    assert (done.returncode, done.stdout) == (2, "")
    starting, said = done.stderr.splitlines()
    assert starting == "starting Spark ..."
    assert said.startswith("eddyline: Spark needs Java 17 or newer; type: ")
    assert said.endswith(", or use --engine local")
    done = _eddyline("run", str(script), environ={"JAVA_HOME": str(script.parent)})
    assert (done.returncode, done.stdout) == (2, "")
    *_, said = done.stderr.splitlines()
    assert said == "eddyline: Spark's JVM did not start; above is what it said (see JAVA_HOME and --conf)"


def _eddyline(
    *arguments: str, environ: dict[str, str] | None = None, without: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eddyline.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**{k: v for k, v in os.environ.items() if k not in without}, **(environ or {})},
    )


def test_the_first_value_that_cannot_be_cast(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("d").write_text("ts,km\n2026-01-01,1.5\n2026-01-01,n/a\n2026-01-01,\n")
    stream = "CREATE STREAM s USING csv OPTIONS (path 'd') TIMESTAMP BY ts;"
    told = ("1 value could not be computed and is NULL", "2 values could not be computed and are NULL (first")
    for select, expected in (("CAST(km AS DOUBLE)", told[0]), ("CAST(km AS DOUBLE), CAST(km AS BIGINT)", told[1])):
        script.write_text(f"{stream} SELECT {select} FROM s;\n")
        assert main(["run", str(script), "--engine", "local"]) == 0
        assert f"{expected}: CAST(km AS DOUBLE) of 'n/a'" in capsys.readouterr().err
    script.write_text(f"{stream} SELECT 1 / 0 AS x FROM s WHERE km = '1.5';\n")
    assert main(["run", str(script), "--engine", "local"]) == 0
    assert capsys.readouterr().err.endswith(f", {told[0]}\n")
