"""Eddyline on Apache Spark: a thin layer, and the only folder that imports pyspark.

Spark gives sources, offsets, shuffle, scheduling and retries; the engine runs unchanged in one task per slot.
"""
