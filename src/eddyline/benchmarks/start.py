"""`bench start`: how long `eddyline run` takes for a small script, from the shell and back, kernels being cached."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from eddyline.benchmarks import Result

BAR = 3.0
ROUNDS = 5
SCRIPT = """
CREATE STREAM a (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 1000, rate 100, k.domain '0..99') TIMESTAMP BY ts;
CREATE STREAM b (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 1000, rate 100, k.domain '0..99') TIMESTAMP BY ts;
SELECT a.k, b.ts FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k AND a.k < 10;
"""


def run() -> list[Result]:
    """The first run may compile; the others count."""
    with TemporaryDirectory() as folder:
        script = Path(folder) / "small.sql"
        script.write_text(SCRIPT)
        times = []
        for _ in range(ROUNDS + 1):
            begin = perf_counter()
            command = [sys.executable, "-m", "eddyline.cli", "run", str(script), "--engine", "local"]
            subprocess.run(command, check=True, capture_output=True)
            times.append(perf_counter() - begin)
    typical = median(times[1:])
    return [Result("small script", "run", typical, "s", BAR, typical <= BAR)]
