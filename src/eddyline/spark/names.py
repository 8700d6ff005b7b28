"""Columns of DataFrames for Python tasks.

PySpark's `mapInArrow` fails for columns with a dot in their names, and Spark takes names that differ in case for the
same. So the columns of tasks have numbers as names, and each task gets the list of the real names.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame


def numbered(frame: DataFrame, columns: Sequence[str]) -> DataFrame:
    """These columns of a DataFrame, with the names c0, c1 and so on."""
    known = frame.columns
    of = frame.toDF(*(f"of{at}" for at in range(len(known))))
    return of.select(*(f"of{known.index(name)}" for name in columns)).toDF(*numbers(len(columns)))


def numbers(columns: int) -> list[str]:
    """The names of so many columns.

    >>> numbers(2)
    ['c0', 'c1']
    """
    return [f"c{at}" for at in range(columns)]


def named(batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """A batch of `numbered` in a task, with the names of the columns.

    >>> named(pa.record_batch({"c0": [1]}), ["a.b"]).to_pylist()
    [{'a.b': 1}]
    """
    return pa.RecordBatch.from_arrays(batch.columns[: len(columns)], names=list(columns))
