"""The Spark session: our defaults, each of which `--conf` can change; an existing session is used unchanged."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from eddyline.errors import SettingError
from eddyline.spark.archive import archive_options
from eddyline.spark.failures import first_line
from eddyline.spark.gateway import launch
from eddyline.spark.spark_home import spark_home

DEFAULTS = {
    "spark.master": "local[*,4]",  # four tries: a task whose Python worker dies is started again
    "spark.app.name": "eddyline",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.daemon.module": "eddyline.spark.daemon",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.speculation": "false",
    "spark.sql.session.timeZone": "UTC",
}
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.memory": "2g"}
"""Settings for a local master: nothing listens on the network."""
ALONE = {"spark.authenticate": "true"}
"""Settings for a master without separate executors: Spark makes a secret, and every connection must present it."""
_COLLECTOR = "-XX:+UseParallelGC"
"""The garbage collector without separate executors: the JVM shares its cores with Python, and keeps little data. The
default collector runs concurrently all the time, which made some batches much slower than others."""


_early: Future[SparkSession] | None = None
"""The session that is being started for the next call of `session`."""


def begin(conf: Mapping[str, str]) -> None:
    """Start a session with this configuration, without waiting for it: the caller imports modules meanwhile. In a
    thread of its own Spark leaves the handlers of signals alone."""
    global _early
    if _existing() is None:
        _early = _begun(conf)


def session(conf: Mapping[str, str]) -> tuple[SparkSession, bool]:
    """A session with this configuration, and whether we made it and must stop it."""
    global _early
    early, _early = _early, None
    if early is None and (existing := _existing()) is not None:
        return existing, False
    try:
        return (early or _begun(conf)).result(), True
    except Py4JError as error:
        raise SettingError(f"Spark did not start: {first_line(error)}") from None


def _begun(conf: Mapping[str, str]) -> Future[SparkSession]:
    started = Future[SparkSession]()
    threading.Thread(target=_start, args=(_settings(conf), started), name="Spark's start", daemon=True).start()
    return started


def _start(settings: Mapping[str, str], started: Future[SparkSession]) -> None:
    try:
        # Executors of local-cluster would inherit this, and Spark stops them with SIGTERM when the driver is gone.
        launch(settings, deaf=not settings["spark.master"].startswith("local-cluster"))
        builder = SparkSession.builder
        for key, value in settings.items():
            builder = builder.config(key, value)
        started.set_result(builder.getOrCreate())
    except BaseException as error:
        started.set_exception(error)


def _existing() -> SparkSession | None:
    """The session of this thread, or else the running session of another thread; None if there is none."""
    active = SparkSession.getActiveSession()
    made = SparkSession._instantiatedSession
    if active is not None or made is None or made._sc._jsc is None:
        return active
    return made


def _settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with which Spark is started; also sets the environment variables that Spark reads."""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise SettingError(
            "Spark needs Java 17 or newer; type: sudo apt-get install openjdk-17-jre-headless, or use --engine local"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    quiet = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    master = conf.get("spark.master", DEFAULTS["spark.master"])
    local = master.startswith("local")
    java = f"{quiet} {_COLLECTOR}" if local else quiet
    alone = master == "local" or master.startswith("local[")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if master.startswith("local[") and (home := spark_home()) is not None:
        os.environ["SPARK_HOME"] = home
        java = f"{java} {archive_options(home)}".strip()
    options = {"spark.driver.extraJavaOptions": java}
    return {**options, **(LOCAL if local else {}), **(ALONE if alone else {}), **DEFAULTS, **conf}
