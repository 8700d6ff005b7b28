"""Streams that Spark reads, a table of pandas, and results as DataFrames of Spark, batch by batch."""

import os
import sys
import tempfile

import pandas as pd
from pyspark.sql import DataFrame, SparkSession

import eddyline as el

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's Python workers need Eddyline, too
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.python.daemon.module", "eddyline.spark.daemon")  # workers start with Eddyline imported: quicker
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
place = tempfile.TemporaryDirectory()
folder = place.name

# Two folders of files, as other programs would write them: 200 orders, and a payment for every second one.
times = "timestamp_seconds(1767225600 + id) AS ts"
spark.range(200).selectExpr(times, "id", "id % 3 AS customer").write.parquet(f"{folder}/orders")
spark.range(0, 200, 2).selectExpr(times, "id AS order_id", "id * 1.5D AS amount").write.parquet(f"{folder}/payments")

orders = spark.readStream.schema("ts timestamp, id bigint, customer bigint").parquet(f"{folder}/orders")
payments = spark.readStream.schema("ts timestamp, order_id bigint, amount double").parquet(f"{folder}/payments")
customers = pd.DataFrame({"number": [0, 1, 2], "name": ["ann", "bob", "eve"]})


def save(results: DataFrame, batch: int) -> None:
    """Called for each batch that has results. After a crash the last one may come again, with the same number: writing
    it to a place that has this number makes every row arrive exactly once."""
    results.write.mode("overwrite").parquet(f"{folder}/paid/batch={batch}")


run = el.query(
    """
    SELECT c.name, o.id, p.amount
    FROM orders [RANGE 10 SECONDS] AS o, payments [RANGE 10 SECONDS] AS p, customers AS c
    WHERE o.id = p.order_id AND o.customer = c.number
    """,
    streams={"orders": el.stream(orders, time="ts"), "payments": el.stream(payments, time="ts")},
    tables={"customers": customers},
).start(foreach_batch=save, checkpoint=f"{folder}/checkpoint")
run.wait()

spark.read.parquet(f"{folder}/paid").groupBy("name").count().orderBy("name").show()
spark.stop()
place.cleanup()
