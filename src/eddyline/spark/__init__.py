"""Eddyline on Apache Spark: the only folder that imports pyspark, and thin.

Spark gives sources, offsets, shuffle, scheduling and retries; the engine runs unchanged in one task per slot.
"""
