"""The page docs/functions.md, generated from the table of functions."""

from __future__ import annotations

from itertools import groupby

from eddyline.bound.functions import table
from eddyline.bound.functions.table import Function

_HEAD = """# Functions

This page is for people who write expressions: it lists every function and operator, with its types and its meaning.
It is written from the function table by `python -m eddyline.bound.functions.page`; a test fails when it is old.

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
- Dictionary-encoded and large strings are strings. Of nested values structs and lists can be opened; else
  they can be selected, counted and tested for NULL only.
- Arguments called constants must be written in the text.
- `upper` and `lower` also know the 75 letters that came with Unicode 16 and 17; DuckDB leaves those as they are.
"""

_AGGREGATES = (
    ("`count(*)`, `count(a)`, `count(DISTINCT a)`", "BIGINT", "Rows; values that are not NULL; different ones."),
    ("`approx_count_distinct(a)`", "BIGINT", "As `count(DISTINCT a)`: it is exact here."),
    ("`sum(a)`", "DECIMAL(38,0) of integers, DECIMAL(38,s) of decimals, DOUBLE of floats", "The sum."),
    ("`min(a)`, `max(a)`", "the type of a", "The least, the greatest."),
    ("`avg(a)`, `mean(a)`", "DOUBLE", "The mean."),
    (
        "`stddev_samp(a)`, `stddev(a)`, `var_samp(a)`, `variance(a)`",
        "DOUBLE",
        "Of a sample; NULL of fewer than two values.",
    ),
    (
        "`quantile_cont(a, 0.95)`, `percentile_cont(0.95) WITHIN GROUP (ORDER BY a)`",
        "DOUBLE, of FLOAT FLOAT",
        "The value at this share of the sorted values, between its neighbours. Of integers and floats.",
    ),
    ("`median(a)`", "DOUBLE, of FLOAT FLOAT", "`quantile_cont(a, 0.5)`."),
    (
        "`quantile_disc(a, 0.95)`, `quantile(a, 0.95)`, `percentile_disc(0.95) WITHIN GROUP (ORDER BY a)`",
        "the type of a",
        "The first of the sorted values up to which there is this share of all.",
    ),
    (
        "`list(a)`, `array_agg(a)`",
        "a list",
        "All values in ascending order, NULLs last. So it does not depend on the order in which rows come.",
    ),
    (
        "`string_agg(a, ', ')`, `group_concat(a, ', ')`, `listagg(a, ', ')`",
        "VARCHAR",
        "All texts in ascending order with a constant between, NULLs left out.",
    ),
)
_AFTER_AGGREGATES = """
Except in `list` NULLs are left out, and of nothing but NULL the result is NULL (of `count` 0). DISTINCT is for COUNT.
Quantiles, lists and `string_agg` keep each different value of a group with how often it came, as `count(DISTINCT a)`
keeps the values.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for group, functions in groupby(table(), key=lambda f: f.group):
        parts.append(f"\n## {group}\n\n| written | gives | what it is |\n| --- | --- | --- |\n")
        parts.extend(_row(f) for f in functions)
    parts.append("\n## Aggregates\n\n| written | gives | what it is |\n| --- | --- | --- |\n")
    parts.extend(f"| {' | '.join(row)} |\n" for row in _AGGREGATES)
    parts.append(_AFTER_AGGREGATES)
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
