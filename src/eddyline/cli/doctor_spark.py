"""What `eddyline doctor` says about Spark: Java, PySpark, the Python of its workers, and a session that is started.

This file does not import pyspark. Another process starts the session and prints the findings (spark/trial.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from eddyline.cli.doctor_packages import Requirement, requirements
from eddyline.cli.finding import Finding
from eddyline.extras import install

_LEAST_JAVA = 17
_INSTALL = "sudo apt-get install openjdk-17-jre-headless, or use --engine local"
_PATIENCE = 20
_PATIENCE_OF_SPARK = 300


def java() -> Iterator[Finding]:
    """The Java that Spark will run: that of JAVA_HOME, or else the first in PATH."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java") if home is None else os.path.join(home, "bin", "java")
    if program is None or not os.access(program, os.X_OK):
        text = (
            "no java in PATH, and JAVA_HOME is not set"
            if home is None
            else f"JAVA_HOME is {home}, which has no bin/java"
        )
        yield Finding("Java", "missing", text, _INSTALL if home is None else f"unset JAVA_HOME; {_INSTALL}")
        return
    try:
        done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=_PATIENCE)
        said = done.stderr.strip() or done.stdout.strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    found = re.search(r'version "(1\.)?(\d+)([^"]*)"', said)
    if found is None:
        yield Finding(
            "Java", "wrong", f"{program} does not run: {(said.splitlines() or ['it says nothing'])[-1]}", _INSTALL
        )
    elif int(found[2]) < _LEAST_JAVA:
        yield Finding("Java", "wrong", f"{found[2]} ({program}); Spark needs {_LEAST_JAVA} or newer", _INSTALL)
    else:
        yield Finding("Java", "ok", f"{found[2]}{found[3]} ({program})")


def pyspark() -> Iterator[Finding]:
    """PySpark with what it needs, and the environment variables that change which Spark and which Python run."""
    parts = [r for r in requirements() if r.extra == "spark"] or [Requirement("pyspark", ""), Requirement("pandas", "")]
    for one in parts:
        found = one.found
        if found is None:
            yield Finding(one.package, "missing", "not installed", f"{install('spark')}, or use --engine local")
        elif not one.fits(found):
            yield Finding(one.package, "wrong", f"{found} is not {one.versions}", install("spark"))
        else:
            yield Finding(one.package, "ok", found)
    home = os.environ.get("SPARK_HOME")
    if home is not None and not os.path.isdir(os.path.join(home, "jars")):
        yield Finding("SPARK_HOME", "wrong", f"{home} has no folder jars", "unset SPARK_HOME")
    elif home is not None:
        yield Finding(
            "SPARK_HOME", "warn", f"the Spark in {home} runs, not PySpark's own", "unset it if that is not meant"
        )
    worker = os.environ.get("PYSPARK_PYTHON")
    if worker is not None and shutil.which(worker) is None:
        yield Finding("PYSPARK_PYTHON", "wrong", f"{worker} is no program", "unset it")
    elif worker is not None and shutil.which(worker) != sys.executable:
        todo = f"it must be Python {sys.version_info[0]}.{sys.version_info[1]} with Eddyline; else unset it"
        yield Finding("PYSPARK_PYTHON", "warn", f"Spark's Python workers run {worker}", todo)


def starts() -> Iterator[Finding]:
    """Start a session, run a task in a Python worker, and end both."""
    command = [sys.executable, "-P", "-m", "eddyline.spark.trial"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_OF_SPARK)
    except subprocess.TimeoutExpired:
        yield Finding("Spark", "wrong", f"no answer after {_PATIENCE_OF_SPARK} seconds")
        return
    if done.returncode == 0:
        told = json.loads(done.stdout.splitlines()[-1])
        text = (
            f"a session started in {told['session']:.1f} s, and a Python worker answered {told['worker']:.1f} s later"
        )
        yield Finding("Spark", "ok", text)
    else:
        said = done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"]
        yield Finding("Spark", "wrong", f"no session, or no Python worker: {said[-1]}")
