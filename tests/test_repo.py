"""Promises of the repository itself: examples in docstrings run, files are small, nothing names a machine.

ruff and mypy are steps of `./run test`, not tests.
"""

from __future__ import annotations

import doctest
import importlib
import re
import statistics
import subprocess
from pathlib import Path

import pytest

import eddyline

ROOT = Path(__file__).parent.parent
MODULES = sorted(
    ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "src").rglob("*.py")
    if path.stem != "__main__"
)
_TEXT = {".py", ".md", ".toml", ".lock", ".sql", ".txt", ""}


def _source(name: str) -> str:
    place = (ROOT / "src").joinpath(*name.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in MODULES if ">>>" in _source(name)])
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


def test_every_module_can_be_imported() -> None:
    for name in MODULES:
        importlib.import_module(name)


@pytest.mark.parametrize("name", ["query", "stream", "udf"])
def test_public_names_have_an_example(name: str) -> None:
    assert ">>>" in (getattr(eddyline, name).__doc__ or "")


def test_files_are_small() -> None:
    sizes = [len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / "src").rglob("*.py")]
    assert statistics.median(size for size in sizes if size > 1) < 200


def _files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_file_names_a_machine() -> None:
    """No path of a developer's machine and no package registry; what such a thing looks like is put together here."""
    wrong = re.compile(
        "|".join(["/wo" + "rk/", "/ho" + "me/", "pypi" + r"\.org", "files.python" + "hosted", "file:" + "//"])
    )
    for path in _files():
        if path.suffix in _TEXT:
            found = wrong.search(path.read_text(encoding="utf-8"))
            assert found is None, f"{path.relative_to(ROOT)} names {found and found[0]}"


def test_lock_file_pins_everything() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace(" \\\n", "")
    pins = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9._-]+==[0-9][^ ]*( ; .*?)?( +--hash=sha256:[0-9a-f]{64})+", pin) for pin in pins)
    names = {pin.partition("==")[0] for pin in pins}
    assert {"numpy", "numba", "pyarrow", "sqlglot", "duckdb", "pytest", "ruff", "mypy", "hypothesis"} <= names


def test_run_script_refuses_what_it_does_not_know() -> None:
    done = subprocess.run(["bash", str(ROOT / "run"), "nonsense"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no command nonsense" in done.stderr
