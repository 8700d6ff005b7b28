from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from eddyline.spark.session import session


def test_what_we_set(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert conf.get("spark.master") == "local[*,4]"  # so a task is started again when its worker dies
    assert conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert conf.get("spark.driver.memory") == "1g", "--conf comes before our defaults"


def test_a_session_that_is_there_is_used_and_not_stopped(spark: SparkSession) -> None:
    found, ours = session({"spark.app.name": "another"})
    assert found is spark and not ours


def test_a_session_of_another_thread_is_used_as_it_is(spark: SparkSession) -> None:
    with ThreadPoolExecutor(1) as thread:
        found, ours = thread.submit(session, {"spark.sql.session.timeZone": "Asia/Tokyo"}).result()
    assert found is spark and not ours
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
