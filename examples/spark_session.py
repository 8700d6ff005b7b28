"""Your own Spark session: it is used as it is, and stays yours. Streams of Spark and of Arrow in one query."""

import os
import sys
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import SparkSession

import eddyline as el

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's Python workers need Eddyline, too
spark = (
    SparkSession.builder.master("local[2]")
    .appName("mine")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")

# A stream of Spark: here its generator, which makes 100 rows per batch; it could be Kafka. It never ends.
sensors = (
    spark.readStream.format("rate-micro-batch")
    .options(rowsPerBatch=100, numPartitions=1, startTimestamp=1767225600000, advanceMillisPerBatch=1000)
    .load()
)
# A stream that is in memory, as an Arrow table; one of pandas or polars would do as well.
moments = [datetime(2026, 1, 1) + timedelta(seconds=second) for second in range(60)]
limits = pa.table({"ts": pa.array(moments, pa.timestamp("us", "UTC")), "most": [50 + second for second in range(60)]})

query = el.query(
    """
    SELECT s.value, l.most
    FROM sensors [RANGE 1 SECOND] AS s, limits [RANGE 1 SECOND] AS l
    WHERE s.value % 100 = l.most
    """,
    streams={"sensors": el.stream(sensors, time="timestamp"), "limits": el.stream(limits, time="ts")},
)
found = 0
with query.start(follow=True) as run:  # without a sink, the run has the results; `with` stops it
    for batch in run:
        found += batch.num_rows
        if found >= 3:
            break

print("found some:", found >= 3)
print("the session goes on:", spark.range(3).count())
spark.stop()
