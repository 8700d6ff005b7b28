"""The docs and the examples: what they run gives what they say.

The guide runs on the local engine, which is quicker; tests/spark/test_readme.py runs the README on Spark, as it says.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.cql.limits import LIMITS
from eddyline.settings import TABLE
from tests.support.pages import ROOT, check_page

_OF_EXAMPLE = re.compile(r"```py\n(.*?)```\n", re.DOTALL)


@pytest.mark.parametrize("name", ["index", "guide", "python", "from-spark", "from-flink", "files", "generated"])
def test_pages_tell_the_truth(name: str, in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_page(f"docs/{name}.md", "local", capsys)


def test_scripts_over_lookup_tables(
    in_tmp: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They need a server. They are right, and the page shows what `validate` says of their tables."""
    for variable in ("PG_URL", "PG_REPLICA"):  # the scripts name them
        monkeypatch.setenv(variable, "postgresql://me@localhost/db")
    page = (ROOT / "docs/lookup-tables.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```SQL\n(.*?)```.*?```\n(.*?)```", page, re.DOTALL)
    assert blocks
    for script, told in blocks:
        Path("page.sql").write_text(script)
        assert main(["validate", "page.sql", "--engine", "local"]) == 0, capsys.readouterr().err
        assert capsys.readouterr().out.partition("\n")[2] == told


def test_the_page_of_settings() -> None:
    path = ROOT / "docs/settings.md"
    head, line, rest = path.read_text(encoding="utf-8").partition(
        "| key | values | default | meaning |\n| --- | --- | --- | --- |\n"
    )
    rows = "".join(f"| {s.key} | {s.kind.values} | {s.default} | {s.meaning} |\n" for s in TABLE)
    between, limits_line, _ = rest[rest.index("\n## ") :].partition("| of | at most |\n| --- | --- |\n")
    limits = "".join(f"| {limit.part} | {limit.most:,} {limit.unit} |\n" for limit in LIMITS)
    actual = head + line + rows + between + limits_line + limits
    if os.environ.get("EDDYLINE_GOLDEN") == "1":
        path.write_text(actual, encoding="utf-8")
    assert actual == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("[!lp]*.sql")), ids=lambda p: p.name)
def test_examples_run(script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    name = f"examples/{script.name}"
    arguments = ["--udf", "examples/my_functions.py"] if script.name == "udf.sql" else []
    assert main(["run", name, "--engine", "local", *arguments]) == 0, capsys.readouterr().err
    assert main(["explain", name]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_the_list_of_examples() -> None:
    """Every example is in it, and every command of it names one."""
    page = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    for example in (ROOT / "examples").iterdir():
        assert f"`{example.name}`" in page or example.name in ("README.md", "__pycache__")
    for command in re.findall(r"^\./run (?:python|eddyline \w+) (\S+)", page, re.MULTILINE):
        assert (ROOT / command).is_file()
    for block in _OF_EXAMPLE.findall((ROOT / "docs/python.md").read_text(encoding="utf-8")):
        assert block in (ROOT / "examples/spark_streams.py").read_text(encoding="utf-8")


@pytest.mark.long
def test_example_of_lookups() -> None:
    """lookups.sql needs the service that the program starts; the README shows its end."""
    shown = re.findall(r"```SQL\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown) == 1
    assert (ROOT / "examples/lookups.sql").read_text(encoding="utf-8").endswith(shown[0])
    command = [sys.executable, "examples/lookups.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith("900 clicks have a user and a price, 450 of them the new ones;")


def test_python_example() -> None:
    command = [sys.executable, "examples/from_python.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "4000 rows in, 6 rows out"
