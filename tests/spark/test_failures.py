from __future__ import annotations

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import PySparkException

from eddyline.errors import EddylineError, InternalError, JobError, SettingError
from eddyline.spark.failures import told_by_spark

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
        (Py4JNetworkError("Answer from Java side is empty"), "Spark's JVM is gone"),
        (ConnectionRefusedError(111, "Connection refused"), "Spark's JVM is gone"),
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
