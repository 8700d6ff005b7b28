"""Where a local Spark is started from: PySpark's own installation, without its archives.

Spark puts `python/lib/pyspark.zip` of its home before everything else on the path of its Python processes, and Python
compiles what it imports from an archive anew in every process: that made each of the ten or so that a job starts with
some three times as slow. Where PySpark is installed those processes find it anyway. So Spark's home is made a folder of
links to the installation that leaves out `python`; it stays in the user's cache, for the next time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pyspark


def spark_home() -> str | None:
    """The folder, made if it is not there; None where one is named by the environment, or none can be made."""
    installed = Path(pyspark.__file__).parent
    if "SPARK_HOME" in os.environ or not (installed / "jars").is_dir():
        return None
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "eddyline")
    home = cache / f"spark-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "jars", "sbin"):
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to(installed / name)
    except OSError:
        return None
    return str(home) if (home / "jars").is_dir() and (home / "bin").is_dir() else None
