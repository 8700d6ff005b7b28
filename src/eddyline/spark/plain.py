"""Plain PySpark, the yardstick of `bench start`: a session, and one micro-batch of a streaming query that does nothing.

It is a program of its own, run in the folder that has the rows in `in`.
"""

from __future__ import annotations

from pyspark.sql import SparkSession


def main() -> None:
    """From the start of the session to its end."""
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.readStream.schema("ts timestamp_ntz, k bigint").parquet("in")
    rows.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
