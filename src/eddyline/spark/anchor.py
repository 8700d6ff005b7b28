"""Tells Spark on which executor the turn of each slot should run (placement.py says which).

A task after a shuffle has no such preference of its own. But a union of partitions (`SQLPartitioningAwareUnionRDD`)
runs where most of its parents prefer, and a collection (`makeRDD`) prefers what it is told. So the rows of a batch are
united with an *anchor*: a collection with one row for each slot, which has no parcel. The anchor names each location
twice, and a shuffle names a host once, so the anchor decides.

The union keeps only the name of a location's host. `hdfs_cache_X` is for Spark a location on the host X, so the union
keeps `executor_HOST_ID`, which is for Spark the location of an executor.

These classes are Spark's own and may change. If Spark does not know them, turns run anywhere, as they do without an
anchor: results are the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from eddyline.errors import InternalError
from eddyline.spark.executors import Executors
from eddyline.spark.failures import first_line
from eddyline.spark.placement import ExecutorPlace, Placement

UNION = "org.apache.spark.rdd.SQLPartitioningAwareUnionRDD"
_log = logging.getLogger(__name__)
T = TypeVar("T")


class Anchor:
    """Places the turns of a job, wherever there are several executors."""

    def __init__(self, spark: SparkSession, union: str = UNION) -> None:
        """`union` is the class of Spark that unites partitions."""
        self._union, self._executors = union, Executors(spark)
        context: Any = spark.sparkContext
        self._context, self._jvm = context._jsc.sc(), context._jvm
        self._placement = Placement()
        self._known: tuple[int, list[str]] = 0, []
        """The number of slots and the ids of the executors for which the collection was made."""
        self.collection: Any = None
        """None: nothing is told."""
        self._works = True

    def hold(self, rows: DataFrame, slots: int) -> DataFrame:
        """The rows of a batch, whose partition i has those of slot i. A row without a parcel may be among them."""
        if not self._try(lambda: self._look(slots)) or self.collection is None:
            return rows
        shuffled: Any = rows._jdf.queryExecution().toRdd()
        if shuffled.getNumPartitions() != slots:
            raise InternalError(f"the rows of {slots} slots are in {shuffled.getNumPartitions()} partitions")
        united = self._try(lambda: self._united(shuffled, rows, slots))
        return rows if united is None else united

    def _try(self, step: Callable[[], T]) -> T | None:
        """What Spark does if it knows our classes; None if it does not, from then on."""
        try:
            return step() if self._works else None
        except (Py4JError, PySparkException, TypeError) as error:  # for Py4J, an unknown class is no function
            self._works = False
            _log.warning("Spark cannot be told where slots are, so they may run anywhere: %s", first_line(error))
            return None

    def _look(self, slots: int) -> bool:
        """Make another collection if the executors or the number of slots have changed."""
        ids = self._executors.ids
        if (slots, ids) == self._known:
            return True
        executors = self._executors.places(ids)
        self._known = slots, ids if len(executors) == len(ids) else []  # else Spark is about to know more of them
        if executors:
            places = self._placement.place(executors, slots)
            self.collection = self.make(places) if len(executors) > 1 else None
        return True

    def make(self, places: Sequence[ExecutorPlace]) -> Any:
        """A collection whose partition i prefers the place of slot i."""
        empty = self._jvm.org.apache.spark.sql.catalyst.InternalRow.fromSeq(self._seq([None, None]))
        located = [f"hdfs_cache_executor_{place.host}_{place.id}" for place in places]
        pairs = [self._jvm.scala.Tuple2(empty, self._seq([location, location])) for location in located]
        return self._context.makeRDD(self._seq(pairs), self._tag())

    def _united(self, shuffled: Any, rows: DataFrame, slots: int) -> DataFrame:
        parents = self._seq([self.collection, shuffled])
        united = getattr(self._jvm, self._union)(self._context, parents, slots, self._tag())
        session, jvm_rows = rows.sparkSession, rows._jdf
        return DataFrame(session._jsparkSession.internalCreateDataFrame(united, jvm_rows.schema(), False), session)

    def _tag(self) -> Any:
        row = self._jvm.java.lang.Class.forName("org.apache.spark.sql.catalyst.InternalRow")
        return self._jvm.scala.reflect.ClassTag.apply(row)

    def _seq(self, items: Sequence[Any]) -> Any:
        return self._jvm.PythonUtils.toSeq(items)
