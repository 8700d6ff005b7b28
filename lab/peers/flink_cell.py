"""Runs in the environment of apache-flink, by its path: standard library and pyflink only.

The argument is JSON with the statements of the query, the last one an INSERT. Prints JSON lines; the last one has the
seconds from the start of the job to its end.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Run the job."""
    task = json.loads(sys.argv[1])
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in task["settings"].items():
        environment.get_config().set(key, value)
    for statement in task["statements"][:-1]:
        environment.execute_sql(statement)
    if "MultiJoin" in environment.explain_sql(task["statements"][-1]):
        sys.stdout.write(json.dumps({"note": "multi-way operator"}) + "\n")
    begin = time.perf_counter()
    environment.execute_sql(task["statements"][-1]).wait()
    sys.stdout.write(json.dumps({"seconds": time.perf_counter() - begin, "rows": task["rows"]}) + "\n")


if __name__ == "__main__":
    main()
