"""Tools to test queries with, part of the package: an oracle, random cases, a settable clock, sources with marks.

Nothing in here is imported by the engine. The oracle needs DuckDB (`pip install eddyline[testing]`).
"""
