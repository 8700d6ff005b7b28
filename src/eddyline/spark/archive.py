"""An archive of Spark's loaded classes in the user's cache, with which a JVM starts faster.

While Spark starts, a JVM mostly loads classes, some ten thousand of them. When the first JVM ends, after our own
process, it writes its loaded classes into an archive; later JVMs map it. A JVM ignores an archive of another Java or
class path, or a half-written one. Two JVMs that write at the same time write separate files, of which one stays. The
name of the archive contains the versions of Java and Spark, so a new version gets a new archive.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pyspark

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""Without these options a JVM would print messages about an archive that it ignores among the results."""
_OTHER_JVM = ("SPARK_HOME", "SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables with which the JVM or its class path may differ: then no archive is used."""


def archive_options(home: str | None) -> str:
    """The Java options that use the archive, or make it; empty where Spark's home is not ours."""
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
