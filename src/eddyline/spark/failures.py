"""The cause of a failed job in one line, taken from the end of the traceback in Spark's message."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from eddyline.errors import EddylineError, InternalError, JobError, SettingError
from eddyline.runtime.running.failures import told
from eddyline.setting_kinds import size_text
from eddyline.spark.workers import CANNOT_IMPORT

_OURS: dict[str, type[EddylineError]] = {
    "JobError": JobError,
    "SettingError": SettingError,
    "InternalError": InternalError,
}
_RAISED = re.compile(r"^(?:\w+\.)*(\w+): (.+)$", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):"
_CRASHED = "Python worker exited unexpectedly"
_TIMES = re.compile(r"failed (\d+) times")
_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError(?:: (.+))?")
_FULL = re.compile("No space left on device|Disk quota exceeded")
_MORE = "--conf spark.driver.memory=4g (of executors: spark.executor.memory) gives it more"


def told_by_spark(error: BaseException, writes: Mapping[str, str] | None = None) -> EddylineError:
    """The error to raise in place of one that Spark, or anything else, raised. `writes` has the folders that the JVM
    writes to, each with what to do if it is full.

    >>> told_by_spark(PySparkException("[X] no: Traceback (most recent call last):\\n  File\\n"
    ...                                "eddyline.errors.JobError: 1.csv is gone\\n SQLSTATE: 38000"))
    JobError('1.csv is gone')
    """
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return JobError(f"Spark's JVM is gone: it was killed, or crashed; if it was out of memory, {_MORE}")
    if not isinstance(error, PySparkException | Py4JError):
        return told(error)
    text = str(error)
    if "No module named 'eddyline'" in text:
        return SettingError(CANNOT_IMPORT)
    if (found := _NO_MEMORY.search(text)) is not None:
        return JobError(f"Spark's JVM is out of memory ({found[1] or 'no room'}); {_MORE}")
    if _FULL.search(text) and _TRACEBACK not in text and writes:
        return JobError(_no_room(writes))
    if _CRASHED in text:
        times = _TIMES.search(text)
        return JobError(
            f"a Python worker of Spark was killed or crashed{f', {times[1]} times in a row' if times else ''}: if the"
            " host is out of memory, fewer slots, smaller windows or smaller batch_rows would do; else a user function"
            " may have crashed it"
        )
    if _TRACEBACK not in text:
        return JobError(f"Spark stopped the job: {first_line(error)}")
    raised = [m.groups() for m in _RAISED.finditer(text.split(_TRACEBACK)[-1]) if m[1] not in ("SQLSTATE", "File")]
    for name, message in raised:
        if name in _OURS:
            return _OURS[name](message)
    return JobError(f"a task failed: {': '.join(raised[0])}" if raised else "a task failed")


def _no_room(writes: Mapping[str, str]) -> str:
    """Which of these folders is full: the one with the least room."""
    disks = {folder: shutil.disk_usage(folder) for folder in writes if os.path.isdir(folder)}
    full = min(disks, key=lambda folder: disks[folder].free, default=next(iter(writes)))
    room = f" ({size_text(disks[full].free)} free of {size_text(disks[full].total)})" if full in disks else ""
    return f"{full} has no room for files of Spark{room}: {writes[full]}"


def first_line(error: BaseException) -> str:
    """The first line of the cause that Spark or its JVM names, without the place."""
    lines = str(error).splitlines()
    lines = [line for line in lines if not line.startswith(("\t", "An error occurred while calling"))]
    cause = next((line for line in reversed(lines) if line.startswith("Caused by: ")), lines[0] if lines else "")
    return cause.removeprefix("Caused by: ").strip(": ") or type(error).__name__
