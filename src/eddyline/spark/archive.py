"""Classes of Spark that a JVM need not load and check anew: an archive of them in the user's cache.

Most of what a JVM does while Spark starts is loading some ten thousand classes. The first JVM writes those that it has
loaded into an archive when it ends, after our own process has; later ones map it. A JVM refuses an archive of another
Java or class path, or one that is half written, and does without; two that write at once write files of their own, of
which one stays. The name of the archive says which Java and which Spark it is of, so a new one gets its own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Else what a JVM says of an archive that it does not take would be among the results."""
_OTHER_JVM = ("SPARK_HOME", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""With these the JVM is not the usual one: its classes are not kept."""


def archive_options(home: str | None) -> str:
    """Options of Java that use the archive, or make it; none where Spark's home is not ours."""
    java = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin") or shutil.which("java")
    if home is None or java is None or any(os.environ.get(name, home) != home for name in _OTHER_JVM):
        return ""
    program = Path(java).resolve()
    key = f"{program} {program.stat().st_mtime_ns} {pyspark.__version__}"
    archive = Path(home).with_name(f"{Path(home).name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa")
    if any(c.isspace() for c in str(archive)):
        return ""
    option = "SharedArchiveFile" if archive.exists() else "ArchiveClassesAtExit"
    return f"-XX:{option}={archive} {_QUIET}"
