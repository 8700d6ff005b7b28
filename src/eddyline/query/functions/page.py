"""docs/functions.md, written from the table so that it cannot say anything else."""

from __future__ import annotations

from itertools import groupby

from eddyline.query.functions import table
from eddyline.query.functions.aggregates import NAMES
from eddyline.query.functions.table import Function

_HEAD = """# Functions

This page is written from the function table by `python -m eddyline.query.functions.page`; a test fails when it is old.

The table is closed: what is not here does not exist, except functions registered with `el.udf`. Names, types and
results are DuckDB's, and every function is tested and fuzzed against it. In short:

- A value that cannot be computed (overflow, division by zero, a cast that fails) is NULL at that place and counted in
  `expression_errors`; `COALESCE(x / 0, 5)` is 5. What IEEE has a value for is no error: `sqrt(-1)` is NaN.
- NaN is the greatest float and equal to itself, -0.0 equals 0.0. AND, OR and NOT are three-valued.
- Whole numbers are INTEGER if they fit, else BIGINT, and take the type of the integer they meet if they fit there.
  `1.5` is DECIMAL(2,1), `1e0` is DOUBLE. A string written in the text is read as what it is compared with.
- Timestamps are microseconds, from 290309-12-22 (BC) to 294247-01-10; those with a time zone are compared and taken
  apart in UTC. The difference of two is an INTERVAL without months; intervals with months can only be added to and
  taken from dates and timestamps.
- Dictionary-encoded and large strings are strings. Of nested values a struct can be opened; else
  they can be selected, counted and tested for NULL only.
- Arguments called constants must be written in the text.
- `upper` and `lower` also know the 75 letters that came with Unicode 16 and 17; DuckDB leaves those as they are.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for group, functions in groupby(table(), key=lambda f: f.group):
        parts.append(f"\n## {group}\n\n| written | gives | what it is |\n| --- | --- | --- |\n")
        parts.extend(_row(f) for f in functions)
    others = ", ".join(f"{alias.upper()} is {name.upper()}" for alias, name in NAMES.items() if alias != name)
    parts.append(f"\n## Aggregates\n\n{', '.join(n.upper() for n in dict.fromkeys(NAMES.values()))}; {others}.\n")
    parts.append(
        "COUNT is BIGINT, SUM of integers DECIMAL(38,0), of decimals DECIMAL(38,s), of floats DOUBLE,\n"
        "MIN and MAX have the type of their argument, the others are DOUBLE. DISTINCT is for COUNT.\n"
    )
    return "".join(parts)


def _row(function: Function) -> str:
    shown = _code(function.takes)
    others = [alias for alias in function.aliases if f"{alias}(" not in function.takes]
    also = f" Also {', '.join(map(_code, others))}." if others else ""
    return f"| {shown} | {function.gives} | {function.doc}{also} |\n"


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
