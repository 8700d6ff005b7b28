"""Tools to test queries with, part of the package: an oracle, random cases, a settable clock, sources with marks.

Nothing in here is imported by the engine. The oracle needs DuckDB (`pip install -e '.[testing]'`).
"""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Options for a JVM that lives for seconds or minutes: quick compilation instead of optimised code, and no verification
of Spark's classes at every start."""
