"""window() counts the rows that Spark's own window() counts."""

import random

import pyarrow as pa
from pyspark.sql import SparkSession

import eddyline as el

SECOND = 1_000_000


def test_window_is_that_of_spark(spark: SparkSession) -> None:
    """With rows on the boundaries and a microsecond beside them, before and after 1970."""
    rng = random.Random(30)
    times = [rng.randrange(-60, 60) * SECOND + rng.choice([-1, 0, 0, 0, 1]) for _ in range(300)]
    rows = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": range(len(times))})
    spark.createDataFrame(rows).createOrReplaceTempView("s")
    for lengths in ("'10 seconds'", "'10 seconds', '5 seconds'", "'10 seconds', '4 seconds', '1 second'",
                    "'1 minute', '1 minute', '-7 seconds'"):  # fmt: skip
        window = f"GROUP BY window(ts, {lengths}), k % 2"
        theirs = spark.sql(
            "SELECT unix_micros(window.start), unix_micros(window.end), unix_micros(window.end) - 1, k % 2, COUNT(*), "
            f"SUM(k) FROM s {window}"
        )
        ours = el.query(
            "SELECT epoch_us(window.start), epoch_us(window.end), epoch_us(window_time(window)), k % 2, COUNT(*), "
            f"SUM(k) FROM s {window}",
            {"s": el.stream(rows, time="ts")},
        )
        found = ours.start().to_arrow()
        expected = sorted(tuple(map(int, row)) for row in theirs.collect())
        assert sorted(tuple(map(int, row.values())) for row in found.to_pylist()) == expected and expected
