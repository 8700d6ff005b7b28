"""Checks of what Spark needs besides its installation: connectors as jars, and a master that answers.

A missing jar is reported before the start only if we know all places from which it could come: an installation of
PySpark to which no setting adds jars. In other cases Spark reports it, and `advice` is added to Spark's message.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from eddyline.runtime.formats import OF_SPARK, SINKS, SOURCES

_PACKAGES = {
    "kafka": "org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
    "avro": "org.apache.spark:spark-avro_2.13:{spark}",
    "delta": "io.delta:delta-spark_2.13:VERSION",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-{minor}_2.13:VERSION",
    "hudi": "org.apache.hudi:hudi-spark{minor}-bundle_2.13:VERSION",
}
_KNOWN = (*SOURCES, *SINKS, *OF_SPARK, "console", "memory", "noop", "rate-micro-batch", "statestore")
"""Formats that need no connector, or whose connector we know."""
_ADDS = ("jars", "classpath", "packages")
"""Words in the names of Spark's settings that add jars."""
_ANSWER = 5.0
"""Seconds that a master may take to answer."""
_ELSEWHERE = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH")
"""Environment variables that change where Spark finds jars or settings."""


def advice(format_: str) -> str:
    """How to install the connector of a format that Spark does not know; empty if we do not know it either."""
    package = _PACKAGES.get(format_)
    if package is None:
        return ""
    spark = _spark_version()
    named = package.format(spark=spark, minor=".".join(spark.split(".")[:2]))
    return f"'{format_}' needs a connector: add --conf spark.jars.packages={named}, or --conf spark.jars=FILE.jar"


def check_connector(format_: str, conf: Mapping[str, str]) -> None:
    """SettingError for a format whose connector is certainly missing, and for a misspelt format if Spark has only its
    own formats."""
    local = conf.get("spark.master", "local").startswith("local")
    if not local or any(name in os.environ for name in _ELSEWHERE):
        return
    if any(word in key.lower() for key in conf for word in _ADDS):
        return
    package = _PACKAGES.get(format_)
    if package is None:
        hint = "" if format_ in _KNOWN or "." in format_ else did_you_mean(format_, _KNOWN)
        if hint.startswith("; did you mean"):
            raise SettingError(f"Spark has no format '{format_}'{hint}", "format")
        return
    jars, artifact = _installed_jars(), package.split(":")[1].split("{")[0].split("_")[0]
    if jars is not None and not any(jar.startswith(artifact) for jar in jars):
        raise SettingError(advice(format_), "format")


@lru_cache(maxsize=1)
def _installed_jars() -> tuple[str, ...] | None:
    """The names of the jars of the installed PySpark; None if other settings may add jars, or PySpark is not
    installed."""
    spec = find_spec("pyspark")
    home = None if spec is None or spec.origin is None else Path(spec.origin).parent
    if home is None or not (home / "jars").is_dir() or (home / "conf" / "spark-defaults.conf").exists():
        return None
    return tuple(jar.name for jar in (home / "jars").iterdir())


def check_master(master: str) -> None:
    """SettingError for a standalone master if none of its hosts answers: Spark would try for more than a minute."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_ANSWER).close()
            return
        except (OSError, ValueError) as error:
            reasons.append(getattr(error, "strerror", None) or str(error))
    raise SettingError(
        f"Spark's master {master} does not answer ({reasons[0]}); start it, or name another: --conf spark.master=..."
    )


def _spark_version() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "VERSION"
