"""A tiny session that runs one task in a Python worker, for `eddyline doctor --spark`.

It is a program of its own: if the JVM fails, hangs or writes pages of text, the doctor goes on. It prints how long the
start and the task took.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import pyarrow as pa

from eddyline.errors import EddylineError
from eddyline.spark.failures import first_line
from eddyline.spark.session import session
from eddyline.spark.workers import check_workers


def main() -> int:
    """Returns the exit status: 0 if the worker has given back the rows that it was sent, else 1 with a line on standard
    error."""
    begin = time.perf_counter()
    try:
        spark, _ = session({})
        started = time.perf_counter()
        check_workers(spark)
        rows = spark.range(3).mapInArrow(_same, "id bigint").collect()
        spark.stop()
    except EddylineError as error:
        return _failed(str(error))
    except Exception as error:
        return _failed(first_line(error))
    if sorted(row.id for row in rows) != [0, 1, 2]:
        return _failed(f"the worker gave back {rows}")
    ended = time.perf_counter()
    sys.stdout.write(json.dumps({"session": started - begin, "worker": ended - started}) + "\n")
    return 0


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _failed(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
