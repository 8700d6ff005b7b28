"""One Spark session for all tests of this folder, and a job that is run on it."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.modules import import_all, is_path, texts
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from eddyline.spark.frames import sink_opener
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from tests.conftest import Ran


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session with our defaults. Spark's log is off, because tests check the errors that they expect."""
    made, ours = session({"spark.log.level": "OFF", "spark.driver.memory": "1g"})
    yield made
    if ours:
        made.stop()


@pytest.fixture
def run_on_spark(spark: SparkSession) -> Callable[..., Ran]:
    """Runs a script on Spark; the rows of a bare SELECT are collected. `stop` is as in `SparkRunner.run`, and `cores`
    as in `SparkRunner`."""

    def run(
        text: str,
        checkpoint: Path | None = None,
        stop: Callable[[], bool] = lambda: False,
        modules: tuple[str, ...] = (),
        cores: Callable[[], int] | None = None,
        follow: bool = False,
        **settings: object,
    ) -> Ran:
        rows: list[dict[str, Any]] = []
        sink = None if "INSERT" in text else CallbackSink(lambda batch: rows.extend(batch.to_pylist()))
        import_all([module for module in modules if not is_path(module)], texts(modules))
        chosen = from_mapping({"slots": 2, "at_end": "flush", **settings})
        place = None if checkpoint is None else str(checkpoint)
        job = prepare(text, sink=sink, out=io.StringIO(), sink_opener=sink_opener(spark), checkpoint=place)
        runner = SparkRunner(job, chosen, spark, place, modules, cores=cores, follow=follow)
        return Ran(rows, "", runner.run(stop))

    return run


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., str]:
    """Writes tables as the files of a stream; returns what follows its name in a script."""

    def write(name: str, *tables: pa.Table, lateness: str = "") -> str:
        (tmp_path / name).mkdir()
        for number, table in enumerate(tables):
            pq.write_table(table, tmp_path / name / f"{number}.parquet")
        timed = f" TIMESTAMP BY ts {lateness}" if "ts" in tables[0].column_names else ""
        return f"{name} USING parquet OPTIONS (path '{tmp_path / name}'){timed}"

    return write
