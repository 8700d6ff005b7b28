"""The daemon from which Spark's Python workers are forked."""

from __future__ import annotations

import subprocess
import sys

PREPARED = """
import os, sys
from eddyline.spark.daemon import prepare
prepare()
print(len(os.listdir("/proc/self/task")), "eddyline.protocol.turn" in sys.modules, flush=True)
import numpy as np
os.fork()
os.fork()
os.write(1, f"{np.random.rand()}\\n".encode())
"""
"""The last line is one write: lines of several processes never run together in the pipe, as pieces of a print may."""


def test_it_has_the_engine_and_no_thread_and_workers_draw_other_numbers() -> None:
    done = subprocess.run([sys.executable, "-c", PREPARED], capture_output=True, text=True, check=False)
    first, *drawn = done.stdout.splitlines()
    assert (first, done.returncode) == ("1 True", 0), done.stderr
    assert len(set(drawn)) == 4
