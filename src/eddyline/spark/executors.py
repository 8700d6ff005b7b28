"""The executors of a Spark application: they come and go with dynamic allocation, and when a host is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from eddyline.spark.placement import ExecutorPlace


class Executors:
    """Those of the application of a session."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._context = context._jsc.sc()

    @property
    def ids(self) -> list[str]:
        """The ids of all executors that are alive."""
        found: str = self._context.getExecutorIds().mkString(" ")
        return found.split()

    def places(self, ids: Sequence[str]) -> list[ExecutorPlace]:
        """Those of these executors about which Spark knows more than their ids, in the order of these."""
        found = self._context.statusStore().executorList(True)
        all_ = [found.apply(number) for number in range(found.size())]
        places = [ExecutorPlace(e.id(), e.hostPort().rpartition(":")[0], e.totalCores()) for e in all_]
        return sorted((place for place in places if place.id in ids), key=lambda place: (len(place.id), place.id))

    def cores(self) -> int | None:
        """The cores of all executors; None if Spark does not know them now."""
        try:
            ids = self.ids
            places = self.places(ids)
        except (Py4JError, PySparkException, TypeError):  # for Py4J, an unknown class is no function
            return None
        return sum(place.cores for place in places) if ids and len(places) == len(ids) else None
