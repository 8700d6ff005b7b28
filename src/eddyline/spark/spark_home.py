"""The home of a local Spark: PySpark's own installation without its zip archives.

Spark puts `python/lib/pyspark.zip` of its home first on the path of its Python processes, and every process compiles
again what it imports from a zip archive: that made the start of each of the ten or so processes of a job about three
times as slow. Where PySpark is installed, the processes find it without the archive. So Spark's home is a folder of
links to the installation without `python`; it stays in the user's cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import pyspark

from eddyline.kernels.cache import user_cache


def spark_home() -> str | None:
    """The folder, created if necessary; None if the environment names a Spark home, or the folder cannot be created."""
    installed = Path(pyspark.__file__).parent
    if "SPARK_HOME" in os.environ or not (installed / "jars").is_dir():
        return None
    cache = user_cache()
    if cache is None:
        return None
    home = cache / f"spark-{hashlib.sha256(str(installed).encode()).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("bin", "jars", "sbin"):
            with contextlib.suppress(FileExistsError):
                (home / name).symlink_to(installed / name)
    except OSError:
        return None
    return str(home) if (home / "jars").is_dir() and (home / "bin").is_dir() else None
