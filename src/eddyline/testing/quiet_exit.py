"""Silences standard error at the very end of a test process. DuckDB's Python module reports objects that are still
alive when a process ends, also objects that only a thread of another library holds. Nothing can be done about them, and
the reports bury the result of the tests."""

from __future__ import annotations

import atexit
import os
import sys


def _close() -> None:
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)


atexit.register(_close)  # registered first, so it is called last
