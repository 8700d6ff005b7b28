"""Tools to test queries with, part of the package: an oracle, random cases, a settable clock, sources with marks.

Nothing in here is imported by the engine. The oracle needs DuckDB (`pip install eddyline[testing]`).
"""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""For a JVM that lives for some seconds or minutes: code that is compiled at once, and not well, costs less than the
time that it takes to do it well; and Spark's classes need not be verified each time."""
