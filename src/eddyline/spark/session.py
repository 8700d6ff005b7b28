"""The Spark session: sane defaults, each of which `--conf` can change; an existing session is used as it is."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from eddyline.errors import SettingError
from eddyline.spark.failures import first_line
from eddyline.spark.gateway import launch
from eddyline.spark.home import spark_home

DEFAULTS = {
    "spark.master": "local[*,4]",  # a task whose Python worker dies is started again
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
"""Where the master is local: nothing listens to the network."""
ALONE = {"spark.authenticate": "true"}
"""Where there are no executors besides: Spark makes a secret, and asks everybody who connects for it."""
_COLLECTOR = "-XX:+UseParallelGC"
"""There, too: the JVM shares its cores with Python, and has little to keep. The usual collector works beside it all the
time, so some batches took much longer than others."""


def session(conf: Mapping[str, str]) -> tuple[SparkSession, bool]:
    """A session with this configuration, and whether it is ours to stop."""
    existing = SparkSession.getActiveSession()
    if existing is not None:
        return existing, False
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise SettingError(
            "Spark needs Java 17 or newer; type: sudo apt-get install openjdk-17-jre-headless, or use --engine local"
        )
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    quiet = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    master = conf.get("spark.master", DEFAULTS["spark.master"])
    local = master.startswith("local")
    java = {"spark.driver.extraJavaOptions": f"{quiet} {_COLLECTOR}" if local else quiet}
    alone = master == "local" or master.startswith("local[")
    settings = {**java, **(LOCAL if local else {}), **(ALONE if alone else {}), **DEFAULTS, **conf}
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if master.startswith("local[") and (home := spark_home()) is not None:
        os.environ["SPARK_HOME"] = home
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        # Executors of local-cluster would inherit that, and Spark ends them by SIGTERM when the driver is gone.
        launch(settings, deaf=not master.startswith("local-cluster"))
        return builder.getOrCreate(), True
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SettingError("Spark's JVM did not start; above is what it said (see JAVA_HOME and --conf)") from None
    except Py4JError as error:
        raise SettingError(f"Spark did not start: {first_line(error)}") from None
