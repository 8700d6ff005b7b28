"""One side of `bench peers` on one query, in a process of its own: `python -m lab.peers.cell TASK`.

The task is JSON: the peer, the name of the query, the folder of its files and the folder for results. The process
prints JSON lines. While it runs, a line is the number of rows that are done. The last line has the seconds without
start-up, and the rows of these seconds; on Spark they are those of all batches but the first.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from itertools import pairwise

from eddyline.settings import Settings
from lab.peers.queries import QUERIES, PeerQuery
from lab.peers.sql import condition, duckdb_select, eddyline_script, name_of

FILES_A_BATCH = 2
"""Files of each stream in a batch of Spark's own joins."""


def _tell(**values: float) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _eddyline(query: PeerQuery, folder: str, out: str, rows: int) -> None:
    from eddyline.runtime.running.job import prepare
    from eddyline.runtime.running.runner import LocalRunner

    runner = LocalRunner(prepare(eddyline_script(query, folder, out)), Settings())
    summary = runner.run(watch=lambda progress: _tell(done=progress.rows_in))
    _tell(seconds=summary.seconds, rows=summary.rows_in)


def _eddyline_on_spark(query: PeerQuery, folder: str, out: str, rows: int) -> None:
    from eddyline.runtime.running.job import prepare
    from eddyline.spark.frames import opener
    from eddyline.spark.runner import SparkRunner
    from eddyline.spark.session import session

    spark, _ = session({})
    moments: list[tuple[float, int]] = []
    job = prepare(eddyline_script(query, folder, out), opener=opener(spark, follow=False))

    def watch(seconds: float, rows_in: int) -> None:
        moments.append((seconds, rows_in))
        _tell(done=rows_in)

    runner = SparkRunner(job, Settings(batch_rows=max(rows // 4, 1)), spark)
    summary = runner.run(watch=lambda progress: watch(progress.seconds, progress.rows_in))
    batches = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(moments) if b[1] > a[1]]
    batches = batches or [(summary.seconds, summary.rows_in)]
    _tell(seconds=sum(seconds for seconds, _ in batches), rows=sum(rows for _, rows in batches))
    spark.stop()


def _sparks_own(settings: dict[str, str]) -> Callable[[PeerQuery, str, str, int], None]:
    def run_own(query: PeerQuery, folder: str, out: str, rows: int) -> None:
        from eddyline.spark.session import session
        from lab.peers.chained_joins import ChainedJoins, run

        spark, _ = session({"spark.driver.memory": "6g", **settings})
        join = ChainedJoins(
            folder,
            query.first,
            [(j.stream, j.key, j.partner, j.partner_key) for j in query.joins],
            query.window,
            dict(query.filters),
            [condition(text, name_of) for text in query.conditions],
            [name_of(*output) for output in query.outputs],
        )
        seconds, read = run(spark, join, out, FILES_A_BATCH, lambda read: _tell(done=read))
        _tell(seconds=seconds, rows=read)
        spark.stop()

    return run_own


def _duckdb(query: PeerQuery, folder: str, out: str, rows: int) -> None:
    import duckdb

    begin = time.perf_counter()
    connection = duckdb.connect()
    for name in query.streams:
        connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{folder}/{name}/*.parquet'")
    connection.execute(f"COPY ({duckdb_select(query)}) TO '{out}/0.parquet' (FORMAT parquet)")
    _tell(seconds=time.perf_counter() - begin, rows=rows)


SIDES = {
    "eddyline": _eddyline,
    "eddyline on spark": _eddyline_on_spark,
    "spark": _sparks_own({}),
    "spark rocksdb": _sparks_own(
        {
            "spark.sql.streaming.stateStore.providerClass": (
                "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
            ),
            "spark.sql.streaming.join.stateFormatVersion": "4",
        }
    ),
    "duckdb": _duckdb,
}


def main() -> None:
    """Run the task in the argument."""
    task = json.loads(sys.argv[1])
    SIDES[task["peer"]](QUERIES[task["query"]], task["folder"], task["out"], task["rows"])


if __name__ == "__main__":
    main()
