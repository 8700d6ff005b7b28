"""Plain PySpark, with which `bench start` compares: a session, and one micro-batch of a streaming query that does
nothing.

It is a separate program, run in the folder whose subfolder `in` has the rows.
"""

from __future__ import annotations

from pyspark.sql import SparkSession


def main() -> None:
    """Start a session, run the query, and stop the session."""
    spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.readStream.schema("ts timestamp_ntz, k bigint").parquet("in")
    rows.writeStream.format("noop").trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
