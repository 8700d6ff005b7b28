"""What libraries report when a process ends does not reach the terminal; what we say before does."""

from __future__ import annotations

import subprocess
import sys

LEAK = """
{}
import ctypes, sys, duckdb
connection = duckdb.connect()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # as a thread that outlives the interpreter
print("said", file=sys.stderr)
"""


def said(first: str) -> str:
    return subprocess.run([sys.executable, "-c", LEAK.format(first)], capture_output=True, text=True).stderr


def test_reports_of_leaks() -> None:
    assert "leaked" in said("") and said("import eddyline.testing.quiet_exit") == "said\n"
    assert said("import eddyline.testing.oracle") == "said\n"
