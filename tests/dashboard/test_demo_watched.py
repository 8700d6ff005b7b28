"""`eddyline demo` as people see it first: on the dashboard, in real Chromium, from its start to its end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eddyline.cli.demo_job import RATE
from tests.support.watched_page import Watched, chromium

SECONDS = 12


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_the_demo_is_watched(engine: str, tmp_path: Path) -> None:
    """The page shows the run, changes of routes with their numbers, and that the run is done; it has no error."""
    command = [sys.executable, "-m", "eddyline.cli", "demo", "--engine", engine, "--seconds", str(SECONDS)]
    with (
        chromium() as browser,
        (tmp_path / "said").open("w+") as said,
        subprocess.Popen(
            [*command, "--out", str(tmp_path), "--json"], stdout=said, stderr=subprocess.PIPE, text=True
        ) as demo,
    ):
        assert demo.stderr is not None
        address = next(filter(None, (re.search(r"http://127\S+", line) for line in demo.stderr)))[0]
        with Watched(browser, address) as watched:
            watched.says("#status", "Live", seconds=180)
            watched.says("#changes .what", "Route: ", seconds=180)
            watched.page.locator("#changes button").filter(has_text="Route: ").first.click()
            watched.wait("document.querySelectorAll('#detail .numbers tbody tr').length > 1")
            watched.page.keyboard.press("Escape")
            watched.says("#status", "The run is done", seconds=180)
            watched.is_cut = True  # the server ends with the command
            demo.communicate(timeout=300)
            assert watched.text("#status") == "The run is done"
        said.seek(0)
        out = said.read()
    summary = json.loads(out.splitlines()[-1])
    assert demo.returncode == 0
    assert summary["rows_in"] == SECONDS * 4 * RATE + SECONDS // 3 * RATE and summary["decisions"]["reroute"] > 0
    assert f"Both orders gave the same {summary['rows_out']:,} results" in out
    assert (tmp_path / "eddyline-demo.png").read_bytes().startswith(b"\x89PNG")
