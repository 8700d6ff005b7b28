"""Runs in the environment of pathway, by its path: standard library and pathway only.

The argument is JSON with the query: streams and their columns, joins, filters and conditions. Every join is an interval
join on the number `t` (milliseconds). Columns are called STREAM_COLUMN, in the files too: Pathway has an `id` itself.
"""

from __future__ import annotations

import json
import operator
import os
import sys
import time
from typing import Any

os.environ.setdefault("PATHWAY_TELEMETRY_SERVER", "")

TESTS = {"=": operator.eq, "<": operator.lt, ">=": operator.ge, "<=": operator.le}


def main() -> None:
    """Run the query over the files as they are now."""
    import pathway as pw

    task = json.loads(sys.argv[1])
    kinds = {"int": int, "str": str}

    def stream(name: str) -> Any:
        of_stream = task["streams"][name].items()
        schema = pw.schema_builder(
            {f"{name}_{column}": pw.column_definition(dtype=kinds[kind]) for column, kind in of_stream}
        )
        table = pw.io.csv.read(f"{task['folder']}/{name}", schema=schema, mode="static")
        for column, test, value in task["filters"].get(name, []):
            tested = table[f"{name}_{column}"]
            if test == "in":
                wanted = tested == value[0]
                for other in value[1:]:
                    wanted = wanted | (tested == other)
                table = table.filter(wanted)
            else:
                table = table.filter(TESTS[test](tested, value))
        return table

    result, names = stream(task["first"]), [task["first"]]
    width = task["window"] * 1000
    for name, key, partner, partner_key in task["joins"]:
        other = stream(name)
        joined = result.interval_join(
            other,
            result[f"{partner}_t"],
            other[f"{name}_t"],
            pw.temporal.interval(-width, width),
            result[f"{partner}_{partner_key}"] == other[f"{name}_{key}"],
        )
        columns = {column: result[column] for column in result.column_names()}
        result = joined.select(**columns, **{column: other[column] for column in other.column_names()})
        for before in names:
            if before != partner:
                apart = result[f"{before}_t"] - result[f"{name}_t"]
                result = result.filter((apart <= width) & (apart >= -width))
        names.append(name)
    for left, test, right in task["conditions"]:
        result = result.filter(TESTS[test](result[left], result[right]))
    result = result.select(**{column: result[column] for column in task["outputs"]})
    pw.io.csv.write(result, f"{task['out']}/0.csv")
    begin = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    sys.stdout.write(json.dumps({"seconds": time.perf_counter() - begin, "rows": task["rows"]}) + "\n")


if __name__ == "__main__":
    main()
