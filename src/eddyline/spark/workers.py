"""Checks of Spark's Python workers: Spark starts them with a Python that the environment names, which may lack
Eddyline.

On this machine we ask that Python before a job begins: Spark would report the error for every task, in pages.
"""

from __future__ import annotations

import subprocess
import sys

from pyspark.sql import SparkSession

from eddyline.errors import SettingError

CANNOT_IMPORT = (
    "Spark's Python workers cannot import eddyline: install it for the Python that they run, or name one that has it in"
    " PYSPARK_PYTHON before the session is made"
)
_ASK = "import importlib.util as u, sys; print(*sys.version_info[:2], u.find_spec('eddyline') is not None)"
_PATIENCE = 60


def check_workers(spark: SparkSession) -> None:
    """SettingError for a local session whose workers run another version of Python, or one without Eddyline."""
    python = spark.sparkContext.pythonExec
    if python == sys.executable or not str(spark.sparkContext.master).startswith("local"):
        return
    try:
        said = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=_PATIENCE).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        said = []
    ours = [str(number) for number in sys.version_info[:2]]
    if said == [*ours, "True"]:
        return
    why = "cannot be run" if not said else f"is Python {'.'.join(said[:2])}"
    why = "cannot import eddyline" if said[:2] == ours else why
    raise SettingError(
        f"Spark's Python workers run {python}, which {why}; before the session is made, activate the environment or set"
        f" PYSPARK_PYTHON={sys.executable}"
    )
