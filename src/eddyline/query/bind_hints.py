"""What an expression may not contain: for each such thing the sentence that says so, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eddyline.query.functions.aggregates import NAMES as AGGREGATES

__all__ = ["AGGREGATES", "HINTS", "OTHER_AGGREGATES", "Clause", "no_aggregate"]

OTHER_AGGREGATES = (
    "any_value", "approx_count_distinct", "arg_max", "arg_min", "array_agg", "bit_and", "bit_or", "bit_xor",
    "bool_and", "bool_or", "corr", "covar_pop", "covar_samp", "entropy", "favg", "first", "fsum", "group_concat",
    "histogram", "kurtosis", "last", "list", "listagg", "mad", "max_by", "median", "min_by", "mode", "product",
    "quantile", "quantile_cont", "quantile_disc", "regr_slope", "sem", "skewness", "stddev_pop", "string_agg",
    "var_pop",
)  # fmt: skip
"""What DuckDB has and Eddyline has not."""
HINTS: dict[type[exp.Expr], str] = {
    exp.Window: (
        "OVER is not supported; write GROUP BY, and the window behind its stream, "
        "as in FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE]"
    ),
    exp.Filter: "FILTER is not supported; put the condition inside, as in SUM(CASE WHEN x > 0 THEN y END)",
    exp.Bracket: "lists and structs cannot be opened here; select them whole",
    exp.Dot: "lists and structs cannot be opened here; select them whole",
    exp.Array: "lists cannot be made here; select the values one by one",
    exp.Struct: "structs cannot be made here; select the values one by one",
    exp.Tuple: "rows in brackets are not supported; compare the columns one by one with AND",
    exp.Star: "* can only stand alone in SELECT or in COUNT(*); name the column",
    exp.Alias: "a name with AS is only possible in SELECT; leave it out here",
    exp.PropertyEQ: "arguments have no names; write them in order",
    exp.Kwarg: "arguments have no names; write them in order",
    exp.Placeholder: "parameters are not supported; write the value into the script",
    exp.Parameter: "parameters are not supported; write the value into the script",
    exp.Lambda: "lambdas are not supported; register a function with el.udf",
    exp.Collate: "COLLATE is not supported; compare lower(x), for example",
    exp.AtTimeZone: "AT TIME ZONE is not supported; timestamps are compared as instants in UTC",
    exp.ByteString: "strings with E are not supported; write a plain string in single quotes",
    exp.SimilarTo: "SIMILAR TO is not supported; write LIKE, or regexp_matches(x, 'pattern')",
    exp.RegexpLike: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.RegexpFullMatch: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.Glob: "GLOB is not supported; write LIKE",
    exp.Any: "ANY and ALL are not supported; write IN with a list of values",
    exp.Order: "ORDER BY inside a function is not supported; the order of rows in a group is not defined",
    exp.Limit: "LIMIT inside a function is not supported; leave it out",
    exp.Distinct: "DISTINCT is only possible in COUNT(DISTINCT x); leave it out here",
    exp.IgnoreNulls: "IGNORE NULLS is not supported; aggregates leave NULLs out anyway",
    exp.RespectNulls: "RESPECT NULLS is not supported; aggregates leave NULLs out",
    exp.Concat: "two strings in a row; write || between them",
}


@dataclass(frozen=True)
class Clause:
    """Where an expression stands, and what is allowed there."""

    name: str
    aggregates: bool = False
    window_end: str = "it is known only for the rows of an aggregate with SLIDE; write the condition in HAVING"
    """Why window_end() is refused there; empty where it is allowed."""


def no_aggregate(written: str, clause: str) -> str:
    if clause.lower() in AGGREGATES:
        return (
            f"aggregates cannot be nested; {written} inside {clause} needs a second query, over the sink of the first"
        )
    if clause in ("WHERE", "ON"):
        return f"{written} is an aggregate and cannot be used in {clause}; write the condition in HAVING"
    return (
        f"{written} is an aggregate and cannot be used in {clause}; group by columns, and write the aggregate in SELECT"
    )
