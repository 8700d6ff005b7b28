"""Shared by the parts of `bench spark`: the joins, their files, and a job that is measured batch by batch."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from eddyline.runtime.running.job import prepare
from eddyline.settings import Settings
from eddyline.spark.frames import opener
from eddyline.spark.runner import SparkRunner
from eddyline.spark.session import session
from eddyline.spark.tasks import Task
from lab.bench.streams import streams

ROWS, FILES, WINDOW = 4_000_000, 80, 5
OWN_SHARE = 5
"""Spark's own joins read only this many of the FILES, because they take long."""


@dataclass(frozen=True)
class SparkJoin:
    """A join of streams that share keys."""

    name: str
    columns: Mapping[str, list[str]]
    where: str
    own: tuple[str, tuple[tuple[str, str, str], ...]]


JOINS = (
    SparkJoin(
        "three-way join",
        {"a": ["a"], "b": ["a", "b"], "c": ["b"]},
        "a.a = b.a AND b.b = c.b",
        ("a", (("b", "a", "a"), ("c", "b", "b"))),
    ),
    SparkJoin(
        "four-way join by one key",
        {"a": ["k"], "b": ["k"], "c": ["k"], "d": ["k"]},
        "a.k = b.k AND b.k = c.k AND c.k = d.k",
        ("a", (("b", "k", "a"), ("c", "k", "b"), ("d", "k", "c"))),
    ),
)


def write(join: SparkJoin, place: str, format_: str = "parquet") -> None:
    """Write the streams of a join to files; the folder `own` has the files for Spark's own joins. Spark reads files in
    the order of their modification times, so these are set."""
    to_file = {"parquet": pq.write_table, "orc": orc.write_table}[format_]
    for name, batch in streams(join.columns, ROWS, 100_000, every=100).items():
        folder, own = Path(place, name), Path(place, "own", name)
        folder.mkdir(parents=True)
        own.mkdir(parents=True)
        for number in range(FILES):
            part = pa.Table.from_batches([batch.slice(number * ROWS // FILES, ROWS // FILES)])
            for to in (folder, own) if number < OWN_SHARE else (folder,):
                path = to / f"{number:04}.{format_}"
                to_file(part, path)
                os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def script(join: SparkJoin, place: str, out: str, format_: str = "parquet", options: str = "") -> str:
    """The script of the job over the files in a folder."""

    def declared(name: str) -> str:
        time = "TIMESTAMPTZ" if format_ == "orc" else "TIMESTAMP"  # Spark has no times without a zone in ORC
        columns = ", ".join([f"ts {time}", *(f"{key} BIGINT" for key in join.columns[name]), "v DOUBLE"])
        source = f"USING {format_} OPTIONS (path '{place}/{name}'{options})"
        return f"CREATE STREAM {name} ({columns}) {source} TIMESTAMP BY ts;"

    sink = f"CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');"
    columns = ", ".join(f"{name}.v AS {name}v" for name in join.columns)
    sources = ", ".join(f"{name} [RANGE {WINDOW} SECONDS]" for name in join.columns)
    select = f"INSERT INTO out SELECT {columns} FROM {sources} WHERE {join.where}"
    return "\n".join([*map(declared, join.columns), sink, select])


def run_job(
    text: str, place: str, settings: Settings, turn: Callable[[str, int], Task]
) -> tuple[list[float], float, int]:
    """Run a job; returns the seconds of each batch from commit to commit, without the first, which includes the start
    of the query; the rows a second in these batches; and the number of results."""
    spark, _ = session({})
    checkpoint = tempfile.mkdtemp(prefix="checkpoint-", dir=place)
    moments: list[tuple[float, int]] = []
    job = prepare(text, opener=opener(spark, follow=False))
    runner = SparkRunner(job, settings, spark, checkpoint, turn=turn)
    summary = runner.run(watch=lambda progress: moments.append((progress.seconds, progress.rows_in)))
    shutil.rmtree(checkpoint)
    batches = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(moments) if b[1] > a[1]][1:]
    times = [seconds for seconds, _ in batches]
    return times, sum(rows for _, rows in batches) / sum(times), summary.rows_out
