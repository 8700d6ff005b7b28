from __future__ import annotations

import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from eddyline.errors import EddylineError, InternalError, JobError, SettingError
from eddyline.spark.failures import told_by_spark

MORE = "--conf spark.driver.memory=4g (of executors: spark.executor.memory) gives it more"
GONE = f"Spark's JVM is gone: it was killed, or crashed; if it was out of memory, {MORE}"
CRASHED = """An error occurred while calling o1.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 5.0 failed 4 times, most recent \
failure: Lost task 1.3: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting
\tat a.b.C(D.scala:1)
Caused by: java.io.EOFException
\tat a.b.C(D.scala:1)"""
TRACEBACK = "[PYTHON_EXCEPTION] An exception was thrown: Traceback (most recent call last):\n"
TRACEBACK += '  File "tasks.py", line 90, in turn\n    done = take: turn\n'


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (PySparkException(f"{TRACEBACK}eddyline.errors.JobError: no space: full\n SQLSTATE: 38000"), "no space: full"),
        (PySparkException(f"{TRACEBACK}eddyline.errors.SettingError: no\n\n\tat a.b.C(D.scala:1)"), "no"),
        (PySparkException(f"{TRACEBACK}ValueError: odd\n SQLSTATE: 38000"), "a task failed: ValueError: odd"),
        (PySparkException("[TABLE] is not there\n'Project"), "Spark stopped the job: [TABLE] is not there"),
        (PySparkException(f"{TRACEBACK}KeyboardInterrupt\n SQLSTATE: 38000"), "a task failed"),
        (Py4JNetworkError("Answer from Java side is empty"), GONE),
        (ConnectionRefusedError(111, "Connection refused"), GONE),
        (
            PySparkException(CRASHED),
            "a Python worker of Spark was killed or crashed, 4 times in a row: if the host is out of memory, fewer"
            " slots, smaller windows or smaller batch_rows would do; else a user function may have crashed it",
        ),
        (
            PySparkException("Job aborted\nCaused by: java.lang.OutOfMemoryError: Java heap space\n\tat a.b.C(D:1)"),
            f"Spark's JVM is out of memory (Java heap space); {MORE}",
        ),
        (OSError(28, "No space left on device"), "cannot read or write data: No space left on device"),
    ],
)
def test_the_cause_in_one_line(error: Exception, wanted: str) -> None:
    told = told_by_spark(error)
    assert str(told) == wanted
    assert isinstance(told, SettingError if wanted == "no" else JobError)


def test_our_bugs_stay_ours() -> None:
    assert isinstance(told_by_spark(PySparkException(f"{TRACEBACK}eddyline.errors.InternalError: x")), InternalError)
    assert isinstance(told_by_spark(ZeroDivisionError("x")), InternalError)
    assert isinstance(told_by_spark(JobError("x")), EddylineError)


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    error = PySparkException("Job aborted\nCaused by: java.io.IOException: No space left on device\n\tat a.b.C(D:1)")
    told = str(told_by_spark(error, {str(tmp_path): "make room"}))
    assert re.fullmatch(rf"{tmp_path} has no room for files of Spark \(.* free of .*\): make room", told)
    other = str(told_by_spark(error, {"s3://bucket": "buy more"}))
    assert other == "s3://bucket has no room for files of Spark: buy more"
    assert str(told_by_spark(error)) == "Spark stopped the job: java.io.IOException: No space left on device"
    ours = PySparkException(f"{TRACEBACK}eddyline.errors.JobError: No space left on device: full\n SQLSTATE: 38000")
    assert str(told_by_spark(ours, {str(tmp_path): "make room"})) == "No space left on device: full"
