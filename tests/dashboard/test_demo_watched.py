"""`eddyline demo` in real Chromium: a real run is watched from its start to its end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.watched_page import Watched, chromium


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.long)])
def test_the_demo_is_watched(engine: str, tmp_path: Path) -> None:
    """The page shows rows, a change of route with its numbers, and that the run is done; it has no error."""
    command = [sys.executable, "-m", "eddyline.cli", "demo", "--engine", engine, "--seconds", "24"]
    with (
        chromium() as browser,
        (tmp_path / "said").open("w+") as said,
        subprocess.Popen([*command, "--out", str(tmp_path)], stdout=said, stderr=subprocess.PIPE, text=True) as demo,
    ):
        assert demo.stderr is not None
        found = next(filter(None, (re.search(r"http://127\S+", line) for line in demo.stderr)))
        with Watched(browser, found[0]) as watched:
            watched.says("#status", "Live", seconds=120)
            watched.says("#changes .what", "Route: ", seconds=120)
            watched.page.locator("#changes button").filter(has_text="Route: ").first.click()
            watched.wait("document.querySelectorAll('#detail .numbers tbody tr').length > 1")
            watched.page.keyboard.press("Escape")
            watched.says("#status", "The run is done", seconds=120)
            watched.says("#told", "rows")
            watched.is_cut = True
            demo.communicate(timeout=120)
            assert watched.text("#status") == "The run is done"
        assert demo.returncode == 0
        said.seek(0)
        assert "gave the same results" in said.read()
