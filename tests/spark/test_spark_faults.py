"""Faults at every point of spark/, in the driver and in Spark's workers: the rows are right, and nothing is left.

One job has all faults, one after the other. Spark starts a failed task again; if the driver fails, or a task fails too
often, the job is started again with its checkpoint, until it ends.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from eddyline import faults
from eddyline.errors import EddylineError, JobError
from eddyline.runtime.running.job import GivenInput, prepare
from eddyline.settings import from_mapping
from eddyline.spark.frames import FrameSource
from eddyline.spark.runner import SparkRunner
from lab.chaos.strikes import left, module, points_reached, strike
from lab.fuzz.fault_points import fault_points
from lab.fuzz.simulation import leftovers

POINTS = sorted(name for name, place in fault_points().items() if place.startswith("spark/"))
ELSEWHERE = ("after publish", "after commit")
"""Points of the driver between its steps, where Spark has noted offsets and not yet its own commit."""
ROWS, FILES, WINDOW = 60, 6, 10


class World:
    """A stream that we read and one that Spark reads, in files of ten seconds; an aggregate that crosses slots."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.starts, self.deaths = folder, spark, 0, list[Exception]()
        self.faults, self.checkpoint, self.out = folder / "faults", folder / "checkpoint", folder / "out"
        for name in "ab":
            (folder / name).mkdir()
            for number in range(FILES):
                seconds = range(number * ROWS // FILES, (number + 1) * ROWS // FILES)
                times = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us"))
                table = pa.table({"ts": times, "k": [s % 5 for s in seconds], "v": list(seconds)})
                pq.write_table(table, folder / name / f"{number}.parquet")
                os.utime(folder / name / f"{number}.parquet", (number, number))  # Spark reads the oldest first
        window = f"[RANGE {WINDOW} SECONDS SLIDE {WINDOW} SECONDS]"
        self.text = f"""
CREATE STREAM a USING parquet OPTIONS (path '{folder}/a') TIMESTAMP BY ts;
CREATE SINK out USING parquet OPTIONS (path '{self.out}');
INSERT INTO out SELECT a.v % 2 AS g, COUNT(*) AS n, SUM(b.v) AS s FROM a {window} AS a, b {window} AS b
WHERE a.k = b.k GROUP BY a.v % 2"""

    def run(self) -> None:
        """Start the job once."""
        self.starts += 1
        columns = self.spark.read.parquet(f"{self.folder}/b").schema
        frame = self.spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).parquet(f"{self.folder}/b")
        given, checkpoint = {"b": GivenInput(FrameSource(frame), "ts")}, str(self.checkpoint)
        job = prepare(self.text, given, out=io.StringIO(), checkpoint=checkpoint)
        settings = from_mapping({"slots": 2, "batch_rows": ROWS // FILES, "at_end": "flush"})
        modules = (module(self.faults, self.checkpoint),)
        SparkRunner(job, settings, self.spark, checkpoint, modules).run()

    def to_the_end(self, most: int) -> None:
        """Start the job again until it ends."""
        while True:
            try:
                return self.run()
            except (EddylineError, OSError) as death:
                self.deaths.append(death)
                assert self.starts <= most, f"it does not come to an end: {self.deaths}"

    def is_right(self) -> None:
        wanted: dict[tuple[int, int], list[int]] = {}
        for a in range(ROWS):
            for b in range(ROWS):
                if a % 5 == b % 5 and -(-a // WINDOW) == -(-b // WINDOW):
                    wanted.setdefault((-(-a // WINDOW), a % 2), []).append(b)
        with duckdb.connect() as database:
            got = database.sql(f"SELECT g, n, s FROM '{self.out}/*.parquet'").fetchall()
        assert sorted(got) == sorted((g, len(bs), sum(bs)) for (_, g), bs in wanted.items())
        assert [name for name in leftovers(str(self.checkpoint)) if not name.startswith("spark/")] == []
        assert not (self.out / "_staged").exists() and not list(self.checkpoint.glob("staged/*/*"))


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path, spark)
    faults.inject(None)


def test_faults_at_every_point(world: World) -> None:
    strikes = [(point, fault) for point in POINTS for fault in ("dies", "disk full")]
    strikes += [(point, "dies") for point in ELSEWHERE]
    strikes += [("store: before a file is renamed", "torn write"), ("after commit", "late file of a zombie")]
    for point, fault in strikes:
        strike(world.faults, point, fault)
    world.to_the_end(len(strikes))
    world.is_right()
    assert left(world.faults) == [], "points that the job does not come to"
    assert set(POINTS) <= points_reached(world.faults)


def test_a_flipped_bit_is_refused(world: World) -> None:
    """A slot that has lost its state reads the segment and refuses it; the result is never wrong."""
    strike(world.faults, "spark: the batch is done", "flipped bit")
    with pytest.raises(EddylineError, match="the batch is done"):
        world.run()
    with pytest.raises(JobError, match="the checkpoint is damaged: log/"):
        world.run()
    assert left(world.faults) == []
