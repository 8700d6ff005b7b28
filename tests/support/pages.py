"""A page of the docs: every script and program in it is run, in order, and prints what the page says it prints.

The order of rows is not defined, so it does not count. `EDDYLINE_GOLDEN=1` writes what was printed into the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
from pathlib import Path

import pytest

from eddyline.cli.main import main

ROOT = Path(__file__).parent.parent.parent
_BLOCK = re.compile(r"```(sql|python|sh|text)\n(.*?)```\n", re.DOTALL)


def check_page(page: str, engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Scripts run on this engine; the current folder is theirs."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    printed = ""

    def run(block: re.Match[str]) -> str:
        nonlocal printed
        kind, content = block.groups()
        if kind == "text":
            same = sorted(content.splitlines()) == sorted(printed.splitlines())
            return block[0] if same else f"```text\n{printed}```\n"
        if kind == "sh":
            printed = subprocess.run(["bash", "-euc", content], capture_output=True, text=True, check=True).stdout
        else:
            printed = _run_script(content, engine, capsys) if kind == "sql" else _run_python(content)
        return block[0]

    actual = _BLOCK.sub(run, text)
    if os.environ.get("EDDYLINE_GOLDEN") == "1":
        path.write_text(actual, encoding="utf-8")
    assert actual == text


def _run_script(text: str, engine: str, capsys: pytest.CaptureFixture[str]) -> str:
    Path("page.sql").write_text(text)
    assert main(["run", "page.sql", "--engine", engine]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def _run_python(text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "page", "exec"), {"__name__": "page"})
    return out.getvalue()
