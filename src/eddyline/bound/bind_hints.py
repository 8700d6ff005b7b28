"""Things that an expression may not contain: for each of them the message, with what to write instead."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eddyline.bound.functions.aggregates import NAMES as AGGREGATES
from eddyline.cql.places import NOT_YET

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
_NOT_YET = "no other query gives the same values"
_POPULATION = "CASE WHEN COUNT(x) = 1 THEN 0 ELSE {} END"
_SPREAD = "(COUNT(x) - 1) / NULLIF(COUNT(x), 0)"
OTHER_AGGREGATES = {
    **dict.fromkeys(_NONE, f"there are {', '.join(dict.fromkeys(AGGREGATES.values())).upper()}"),
    **dict.fromkeys(("any_value", "first", "last", "first_value", "last_value", "arbitrary"), _NOT_YET),
    **dict.fromkeys(
        ("arg_max", "max_by", "arg_min", "min_by"),
        _NOT_YET,
    ),
    **dict.fromkeys(("count_if", "countif"), "write COUNT(CASE WHEN x > 0 THEN 1 END)"),
    **dict.fromkeys(("bool_and", "every"), "write MIN(x > 0), since FALSE is less than TRUE"),
    **dict.fromkeys(("bool_or", "some"), "write MAX(x > 0), since TRUE is greater than FALSE"),
    "stddev_pop": f"write {_POPULATION.format(f'STDDEV_SAMP(x) * sqrt({_SPREAD})')}",
    "var_pop": f"write {_POPULATION.format(f'VAR_SAMP(x) * {_SPREAD}')}",
}
"""Aggregates of other systems, and what to write instead."""

_WHEN = "a result must not depend on when it is computed"
_MOMENT = f"{_WHEN}; the time of a row is its time column, that of an aggregate window_end()"
_DAY = f"{_WHEN}; the day of a row is that of its time column, CAST(ts AS DATE)"
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
    exp.Window: f"OVER {NOT_YET}",
    exp.Filter: "FILTER is not supported yet; put the condition inside, as in SUM(CASE WHEN x > 0 THEN y END)",
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
    exp.SimilarTo: "SIMILAR TO is not supported; write regexp_matches(x, '^(pattern)$')",
    exp.RegexpLike: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.RegexpFullMatch: "the operator ~ is not supported; write regexp_matches(x, 'pattern')",
    exp.Glob: "GLOB is not supported; write LIKE, with % for * and _ for ?",
    exp.Any: "ANY and ALL are not supported; write the comparisons one by one, with OR for ANY and AND for ALL",
    exp.Order: (
        "ORDER BY inside a function is not supported yet; list and string_agg have their values in ascending order"
    ),
    exp.Limit: "LIMIT inside a function is not supported yet, and no other query gives the same values",
    exp.Distinct: "DISTINCT is only possible in COUNT(DISTINCT x), and no other query gives the same values",
    exp.IgnoreNulls: "IGNORE NULLS is not supported; aggregates leave NULLs out anyway",
    exp.RespectNulls: "RESPECT NULLS is not supported; aggregates leave NULLs out",
    exp.Concat: "two strings in a row; write || between them",
}


WINDOW_ENDS = ("window_end", "window_start", "window_time")
_BEHIND = "write the window behind its stream, as in FROM s [TUMBLE 1 MINUTE] or [HOP 1 MINUTE, 10 MINUTES]"
WINDOW_CALLS = {
    **dict.fromkeys(("tumble", "hop", "cumulate"), _BEHIND),
    **dict.fromkeys(("session", "session_window"), "there are no such windows yet"),
    **dict.fromkeys(("tumble_start", "hop_start"), "write window_start()"),
    **dict.fromkeys(("tumble_end", "hop_end"), "write window_end()"),
    **dict.fromkeys(("tumble_rowtime", "hop_rowtime"), "write window_time()"),
    "window": "write GROUP BY window(ts, '1 minute'), and window.start and window.end in SELECT",
}
"""Names that other systems have for windows, and what to write instead."""


@dataclass(frozen=True)
class Clause:
    """The clause of an expression, and what is allowed in it."""

    name: str
    aggregates: bool = False
    window_end: str = "it is known only for the rows of an aggregate with SLIDE; write the condition in HAVING"
    """Why window_end() is refused there; empty where it is allowed."""
    window_time: bool = False
    """Whether window_time() is allowed, too."""


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
