"""Without an extra, whatever needs it is refused in one line that names the extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from eddyline.extras import install
from tests.support.pages import ROOT


def test_what_is_missing_is_told_in_one_line(in_tmp: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, str(ROOT / "tests/support/without_extras.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for extra, status, said in json.loads(done.stdout.splitlines()[-1]):
        assert status in (None, 1, 2), (extra, said)
        assert said.count("\n") <= 3, said  # a mistake of a script also shows its place
        assert install(extra) in said.partition("\n")[0], (extra, status, said)
