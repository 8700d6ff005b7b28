"""Files of the user with the names of other modules: they are never imported in place of these."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_STREAM = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 3) TIMESTAMP BY ts;"
_ASKED = "CREATE TABLE u (id BIGINT, n BIGINT) USING {} INDEX ON (id); SELECT k, n FROM s, u WHERE k = id;"
_RAISES = "raise RuntimeError('a file of the user')"
_UDF = """import json
import eddyline as el
from beside import more

@el.udf(returns="BIGINT")
def added(k):
    return k + json.loads(json.dumps(more))
"""
_INSTALLED = [str(Path(sys.executable).with_name("eddyline"))]
_AS_MODULE = [sys.executable, "-P", "-m", "eddyline.cli"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "http",
        "types",
        "random",
        "json",
        "enum",
        "numba",
        "psycopg",
        "aiohttp",
        "pyarrow",
        "signal",
        "eddyline",
    ):
        (tmp_path / f"{name}.py").write_text(_RAISES)
    (tmp_path / "mine.py").write_text("import json\nscores = print")
    (tmp_path / "beside.py").write_text("more = 10")
    return tmp_path


def _eddyline(folder: Path, *command: str) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("program", [_INSTALLED, _AS_MODULE], ids=["installed", "module"])
@pytest.mark.parametrize(
    ("table", "status", "said"),
    [
        ("http OPTIONS (url 'http://localhost:1/{id}')", 0, "is right"),
        ("python OPTIONS (function 'http:scores')", 2, "http is a module of Python itself; rename http.py"),
        ("python OPTIONS (function 'pyarrow:scores')", 2, "pyarrow has no function scores"),
        ("python OPTIONS (function 'mine:scores')", 0, "is right"),
    ],
)
def test_files_in_the_current_folder(folder: Path, program: list[str], table: str, status: int, said: str) -> None:
    (folder / "job.sql").write_text(_STREAM + _ASKED.format(table))
    found, text = _eddyline(folder, *program, "validate", "job.sql", "--engine", "local")
    assert (found, said in text) == (status, True), text


@pytest.mark.parametrize("named", ["functions", "functions.py", "types.py"])
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.long)])
def test_functions_of_the_user(folder: Path, named: str, engine: str) -> None:
    """A file may have any name; modules beside it are found."""
    (folder / "functions.py").write_text(_UDF)
    (folder / "types.py").write_text(_UDF)
    (folder / "job.sql").write_text(f"{_STREAM} SELECT added(0 * k) AS j FROM s")
    status, text = _eddyline(folder, *_AS_MODULE, "run", "job.sql", "--engine", engine, "--udf", named)
    assert status == 0 and text.split().count("10") == 3, text


def test_a_module_with_the_name_of_one_of_python(folder: Path) -> None:
    (folder / "job.sql").write_text(f"{_STREAM} SELECT k FROM s")
    status, text = _eddyline(folder, *_AS_MODULE, "validate", "job.sql", "--engine", "local", "--udf", "http")
    assert (status, text) == (2, "eddyline: --udf http: http is a module of Python itself; rename http.py\n")
