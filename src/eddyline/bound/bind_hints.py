"""Things that an expression may not contain: for each of them the message, with what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eddyline.bound.functions.aggregates import NAMES as AGGREGATES

__all__ = [
    "AGGREGATES",
    "HINTS",
    "OTHER_AGGREGATES",
    "UNSTEADY",
    "WINDOW_CALLS",
    "WINDOW_ENDS",
    "Clause",
    "no_aggregate",
]

FORMS = {
    "quantile_cont": "{}(x, 0.95)",
    "quantile_disc": "{}(x, 0.95)",
    "string_agg": "{}(x, ', ')",
}
"""How aggregates with two arguments are written."""
_NONE = (
    "bit_and", "bit_or", "bit_xor", "corr", "covar_pop", "covar_samp", "entropy", "favg", "fsum", "histogram",
    "kurtosis", "mad", "mode", "product", "regr_slope", "sem", "skewness",
)  # fmt: skip
_NO_ORDER = "the rows of a group have no order; write MIN(x) or MAX(x)"
OTHER_AGGREGATES = {
    **dict.fromkeys(_NONE, f"there are {', '.join(dict.fromkeys(AGGREGATES.values())).upper()}"),
    **dict.fromkeys(("any_value", "first", "last", "first_value", "last_value", "arbitrary"), _NO_ORDER),
    **dict.fromkeys(
        ("arg_max", "max_by", "arg_min", "min_by"),
        "write MAX or MIN, and join the stream with the result in a second script",
    ),
    **dict.fromkeys(("count_if", "countif"), "write COUNT(CASE WHEN x > 0 THEN 1 END)"),
    **dict.fromkeys(("bool_and", "every"), "write MIN(x > 0), since FALSE is less than TRUE"),
    **dict.fromkeys(("bool_or", "some"), "write MAX(x > 0), since TRUE is greater than FALSE"),
    "stddev_pop": "write STDDEV_SAMP(x) * sqrt((COUNT(x) - 1) / COUNT(x))",
    "var_pop": "write VAR_SAMP(x) * (COUNT(x) - 1) / COUNT(x)",
}
"""Aggregates of other systems, and what to write instead."""

_WHEN = "a result must not depend on when it is computed"
_MOMENT = f"{_WHEN}; write the time column, or window_end() with an aggregate"
_DAY = f"{_WHEN}; write the day of the time column, as in CAST(ts AS DATE)"
_CHANCE = "a result must not depend on chance; choose rows by their values, as in WHERE id % 10 = 0"
_UNIQUE = "a result must not depend on chance; make a key of columns, as in a.id || '-' || b.id"
_NOW = """
    now current_timestamp localtimestamp get_current_timestamp transaction_timestamp sysdate systimestamp getdate
    proctime current_row_timestamp unix_timestamp current_time localtime get_current_time current_localtimestamp
    current_localtime
"""
UNSTEADY = {
    name: f"{name} is not supported, {why}"
    for names, why in (
        (_NOW, _MOMENT),
        ("today current_date curdate", _DAY),
        ("random rand randn setseed", _CHANCE),
        ("uuid gen_random_uuid uuidv4 uuidv7 nextval currval monotonically_increasing_id", _UNIQUE),
    )
    for name in names.split()
}
"""Functions whose value depends on more than their arguments."""
HINTS: dict[type[exp.Expr], str] = {
    exp.Window: (
        "OVER is not supported; write GROUP BY, and the window behind its stream, "
        "as in FROM s [RANGE 10 MINUTES SLIDE 1 MINUTE]"
    ),
    exp.Filter: "FILTER is not supported; put the condition inside, as in SUM(CASE WHEN x > 0 THEN y END)",
    exp.Slice: "parts of lists are not supported; name the elements one by one, as in x[1]",
    exp.Dot: "only a field follows a point; write struct.field, or f(x)",
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
    exp.ByteString: "strings with E are not supported; write a plain string in single quotes",
    exp.SimilarTo: "SIMILAR TO is not supported; write LIKE, or regexp_matches(x, 'pattern')",
    exp.RegexpLike: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.RegexpFullMatch: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.Glob: "GLOB is not supported; write LIKE",
    exp.Any: "ANY and ALL are not supported; write IN with a list of values",
    exp.Order: "ORDER BY inside a function is not supported; list and string_agg have their values in ascending order",
    exp.Limit: "LIMIT inside a function is not supported; leave it out",
    exp.Distinct: "DISTINCT is only possible in COUNT(DISTINCT x); leave it out here",
    exp.IgnoreNulls: "IGNORE NULLS is not supported; aggregates leave NULLs out anyway",
    exp.RespectNulls: "RESPECT NULLS is not supported; aggregates leave NULLs out",
    exp.Concat: "two strings in a row; write || between them",
}


WINDOW_ENDS = ("window_end", "window_start")
_BEHIND = "write the window behind its stream, as in FROM s [TUMBLE 1 MINUTE] or [HOP 1 MINUTE, 10 MINUTES]"
WINDOW_CALLS = {
    **dict.fromkeys(("tumble", "hop", "session", "cumulate", "session_window"), _BEHIND),
    **dict.fromkeys(("tumble_start", "hop_start"), "write window_start()"),
    **dict.fromkeys(("tumble_end", "hop_end", "tumble_rowtime", "hop_rowtime", "window_time"), "write window_end()"),
}
"""Names that other systems have for windows, and what to write instead."""


@dataclass(frozen=True)
class Clause:
    """The clause of an expression, and what is allowed in it."""

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
