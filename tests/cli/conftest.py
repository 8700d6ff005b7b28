"""The Spark session that tests of this folder share with those of tests/spark."""

from tests.spark.conftest import spark

__all__ = ["spark"]
