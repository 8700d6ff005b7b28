"""The SELECT of random queries as text: outputs, group keys, aggregates, HAVING."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pyarrow as pa

from eddyline.testing.case import FromPart, SelectParts
from lab.fuzz import borrowed_windows
from lab.fuzz.predicates import Alias, is_number, is_opaque, value

Note = Callable[[str], None]
"""A function that is called with the name of every drawn feature."""


def plain_select(
    rng: random.Random, aliases: Sequence[Alias], sources: Sequence[FromPart], where: Sequence[str]
) -> SelectParts:
    """A query without aggregates."""
    joined = rng.random() < 0.15
    if rng.random() < 0.03 and not any(s.window.startswith("ROWS") for s in sources):
        return SelectParts(("*",), tuple(sources), tuple(where), joined=joined)
    outputs = [value(rng, aliases, rng.choice([1, 2, 3])) for _ in range(rng.randint(1, 5))]
    return SelectParts(_named(outputs), tuple(sources), tuple(where), joined=joined)


def grouped_select(
    rng: random.Random,
    aliases: Sequence[Alias],
    sources: Sequence[FromPart],
    where: Sequence[str],
    slide: bool,
    note: Note,
    windows: Sequence[str] | None = None,
) -> SelectParts:
    """A query with aggregates, with or without GROUP BY. Windows with borrowed names are in `sources` and `windows`,
    which are keys."""
    keys = _keys(rng, aliases)
    note("group by" if keys else "one group")
    outputs = [k for k in keys if rng.random() < 0.9]
    outputs += [_aggregate(rng, aliases, note) for _ in range(rng.randint(0 if outputs else 1, 4))]
    if windows is not None:
        outputs += borrowed_windows.outputs(rng, len({s.window for s in sources}) == 1)
    elif slide:
        outputs += ["window_end()"] if rng.random() < 0.8 else []
    if slide and windows is None and rng.random() < 0.3:
        ranges = {s.window.split(" SLIDE")[0] for s in sources if s.window}
        alike = len(ranges) == 1 and all(s.window.startswith("RANGE") for s in sources)
        outputs += ["window_start()"] if alike else ["window_end"]
    having = None
    if rng.random() < 0.25:
        note("having")
        having = _having(rng, aliases)
    if keys and outputs[: len(keys)] == keys and rng.random() < 0.15:
        note("group by position or name")
        keys = [rng.choice([str(i + 1), f"o{i}"]) for i in range(len(keys))]
    if slide and keys and rng.random() < 0.15:
        note("group by window_end")
        keys.append("window_end()")
    keys = [*keys, *(windows or ())]
    return SelectParts(_named(outputs), tuple(sources), tuple(where), tuple(keys), having, joined=rng.random() < 0.15)


def _named(outputs: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{text} AS o{i}" for i, text in enumerate(outputs))


def _keys(rng: random.Random, aliases: Sequence[Alias]) -> list[str]:
    keys: list[str] = []
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        alias = rng.choice(list(aliases))
        column, type_ = rng.choice([(c, t) for c, t in alias.columns.items() if not is_opaque(t)])
        ref = alias.ref(column)
        if rng.random() < 0.2 and pa.types.is_integer(type_):
            ref = rng.choice([f"{ref} % 3", f"({ref} + 1) * 2", f"{ref} > 4", f"CAST({ref} AS VARCHAR)"])
        if rng.random() < 0.5 and pa.types.is_binary(type_):
            ref = f"CAST({ref} AS VARCHAR)"
        keys += [ref] if ref not in keys else []
    return keys


def _number(rng: random.Random, aliases: Sequence[Alias]) -> str:
    """An expression that can be summed; mostly a column."""
    if rng.random() < 0.15:
        return value(rng, aliases, 1, rng.choice([pa.int64(), pa.decimal128(18, 3)]))
    alias = rng.choice(list(aliases))
    return rng.choice([alias.ref(c) for c, t in alias.columns.items() if is_number(t)] or ["1"])


def _aggregate(rng: random.Random, aliases: Sequence[Alias], note: Note) -> str:
    alias = rng.choice(list(aliases))
    anything = alias.ref(rng.choice(list(alias.columns)))
    ordered = alias.ref(rng.choice([c for c, t in alias.columns.items() if not is_opaque(t)]))
    number = _number(rng, aliases)
    integer = rng.choice([alias.ref(c) for c, t in alias.columns.items() if pa.types.is_integer(t)] or ["1"])
    if rng.random() < 0.15:
        note("expression over aggregates")
        return rng.choice(
            [
                f"SUM({number}) / COUNT(*)",
                f"MAX({number}) - MIN({number})",
                f"COALESCE(SUM({number}), 0) + COUNT(*)",
                "CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END",
                "COUNT(*) * 2 + 1",
                "1 / (COUNT(*) - 2)",
            ]
        )
    one = rng.choice(
        [
            "COUNT(*)",
            f"COUNT({anything})",
            f"COUNT(DISTINCT {ordered})",
            f"SUM({number})",
            f"MIN({ordered})",
            f"MAX({ordered})",
            f"AVG({number})",
            f"STDDEV_SAMP({number})",
            f"VAR_SAMP({number})",
            f"quantile_cont(CAST({number} AS DOUBLE), {rng.choice(['0', '0.25', '0.9', '1'])})",
            f"median({integer})",
            f"quantile_disc({ordered}, {rng.choice(['0', '0.3', '0.5', '0.99'])})",
            f"list({ordered})",
            f"string_agg(CAST({integer} AS VARCHAR), '; ')",
            f"approx_count_distinct({ordered})",
        ]
    )
    note(f"aggregate {one.split('(')[0]}{' DISTINCT' if 'DISTINCT' in one else ''}")
    return one


def _having(rng: random.Random, aliases: Sequence[Alias]) -> str:
    number, least = _number(rng, aliases), rng.randint(-2, 3)
    return rng.choice(
        [
            "COUNT(*) > 1",
            "COUNT(*) BETWEEN 1 AND 20",
            "COUNT(*) % 2 = 1",
            "NOT COUNT(*) = 2",
            f"MAX({number}) >= {least} OR COUNT(*) > 3",
            f"SUM({number}) > {least}",
            f"AVG({number}) IS NOT NULL",
        ]
    )
