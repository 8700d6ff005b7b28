"""Tools to test queries with: an oracle, results compared as multisets, a settable clock, sources with marks.

Nothing in here is imported by the engine. The oracle needs DuckDB (`pip install -e '.[testing]'`).
"""
