"""The laboratory: benchmarks, experiments, peers, fuzzers, chaos and planted faults.

It stands beside the package, uses it as anybody may, and is in no wheel. `./run` starts its parts.
"""

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""Options for a JVM that lives for seconds or minutes: quick compilation instead of optimised code, and no verification
of Spark's classes at every start."""
