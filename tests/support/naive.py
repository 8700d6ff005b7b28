"""The tie-breaker: SEMANTICS done naively, when DuckDB and Eddyline differ.

Cross products, loops over slide boundaries, Python lists. Shares with the engine the binder and the evaluation of
single expressions (so it cannot tell who is right about those), nothing else; shares nothing with the oracle.
"""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount, evaluate, mask
from eddyline.bound.expr import WINDOW_END, Aggregate, SourceColumn, sources_of
from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.testing.case import Case


def naive(case: Case, query: BoundQuery) -> pa.Table:
    """The result rows of a case."""
    streams, newest = _used_rows(case, query)
    rows = [case.tables[s.stream.name] if s.stream.is_table else streams[s.stream.name] for s in query.sources]
    times = [None if s.stream.is_table else _times(r, s.stream.time) for s, r in zip(query.sources, rows, strict=True)]
    at = _combinations(query, rows)
    env = _env(query, rows, at)
    component = [None if t is None else t[i] for t, i in zip(times, at, strict=True)]
    newest_of = np.max([t for t in component if t is not None], axis=0) if len(at[0]) else np.zeros(0, np.int64)
    slide = query.group.slide if query.group else None
    if slide is None:
        fits = _in_windows(query, rows, times, at, newest_of, False)
        env = {c: v.filter(pa.array(fits)) for c, v in env.items()}
        return _finish(query, env, int(fits.sum()), None)
    parts = [_finish(query, {c: v.slice(0, 0) for c, v in env.items()}, 0, 0)]
    if len(at[0]):
        # with gap 1, a row counts in the window that begins at its time, and windows end a step apart from origin + 1
        sizes = [s.window.size for s in query.sources if s.window.kind is WindowKind.RANGE] if slide.gap else [0]
        first = (int(newest_of.min()) - slide.origin - slide.gap) // slide.step * slide.step + slide.origin + slide.gap
        last = newest + max(sizes) if slide.gap else -(-newest // slide.step) * slide.step
        for end in range(first, last + slide.step * slide.gap + 1, slide.step):
            fits = _in_windows(query, rows, times, at, np.full(len(at[0]), end), True)
            parts.append(_finish(query, {c: v.filter(pa.array(fits)) for c, v in env.items()}, int(fits.sum()), end))
    return pa.concat_tables(parts)


def _used_rows(case: Case, query: BoundQuery) -> tuple[dict[str, pa.Table], int]:
    """The rows of each stream that are neither dead nor late, and the newest time of any stream."""
    declared = {s.stream.name: s.stream for s in query.sources if not s.stream.is_table}
    used: dict[str, list[pa.RecordBatch]] = {name: [] for name in declared}
    newest: dict[str, int] = {}
    for batch in case.batches:
        before = dict(newest)
        for name, rows in batch.rows:
            rows = rows.filter(rows.column(declared[name].time).is_valid())
            times = _times(rows, declared[name].time)
            late = times < before[name] - declared[name].lateness if name in before else np.zeros(len(times), bool)
            used[name].append(rows.filter(pa.array(~late)))
            if len(times):
                newest[name] = max(newest.get(name, int(times.max())), int(times.max()))
    tables = {name: pa.Table.from_batches(parts, declared[name].schema) for name, parts in used.items()}
    return tables, max(newest.values(), default=0)


def _times(rows: pa.Table | pa.RecordBatch, column: str) -> np.ndarray:
    values = rows.column(column)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return np.asarray(values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64()))


def _combinations(query: BoundQuery, rows: list[pa.Table]) -> list[np.ndarray]:
    """Row numbers of every combination for which WHERE holds: one source more at a time, filtered early."""
    at = [np.zeros(1, np.int64)[:0]] * 0
    count, done = 1, set()
    for source, table in enumerate(rows):
        at = [np.repeat(a, len(table)) for a in at] + [np.tile(np.arange(len(table)), count)]
        count *= len(table)
        for predicate in set(query.predicates) - done:
            if max(sources_of(predicate), default=0) <= source:
                done.add(predicate)
                held = mask(predicate, _env(query, rows, at), count, ErrorCount())
                at, count = [a[held] for a in at], int(held.sum())
    return at


def _env(query: BoundQuery, rows: list[pa.Table], at: list[np.ndarray]) -> dict[SourceColumn, pa.Array]:
    env = {}
    for column in query.columns:
        if column.source < len(at):
            values = rows[column.source].column(column.name)
            values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
            env[column] = values.take(pa.array(at[column.source]))
    return env


def _in_windows(query: BoundQuery, rows, times, at, instant: np.ndarray, slides: bool) -> np.ndarray:
    """Which combinations have every component in its window at their instant."""
    fits = np.ones(len(instant), bool)
    for source, s in enumerate(query.sources):
        if times[source] is None:
            continue
        time = times[source][at[source]]
        borrowed = slides and query.group.slide.gap
        fits &= time < instant if borrowed else time <= instant
        if s.window.pieces is not None:
            begin = s.window.pieces.origin + 1
            fits &= (time - begin) // s.window.size == (instant - 1 - begin) // s.window.size
        elif s.window.kind is WindowKind.RANGE:
            fits &= instant - time < s.window.size if slides and not borrowed else instant - time <= s.window.size
        elif s.window.kind is WindowKind.ROWS:
            order = _order(rows[source], times[source], query.columns_of_source(source))
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            until_now = np.searchsorted(times[source][order], instant, side="left" if borrowed else "right")
            fits &= until_now - rank[at[source]] <= s.window.size
    return fits


def _order(rows: pa.Table, times: np.ndarray, used: tuple[str, ...]) -> np.ndarray:
    def key(value: object) -> tuple[int, object]:
        if value is None:
            return (2, 0)
        return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)

    columns = [rows.column(name).to_pylist() for name in used if not pa.types.is_nested(rows.schema.field(name).type)
               or pa.types.is_dictionary(rows.schema.field(name).type)]  # fmt: skip
    return np.array(sorted(range(len(times)), key=lambda i: (times[i], *(key(c[i]) for c in columns))), dtype=np.int64)


def _finish(query: BoundQuery, env: dict, count: int, end: int | None) -> pa.Table:
    """Outputs of combinations, or of the groups they form."""
    errors = ErrorCount()
    if query.group is not None:
        keys = [evaluate(k, env, count, errors) for k in query.group.keys]
        groups: dict[tuple, list[int]] = defaultdict(list)
        for i, values in enumerate(zip(*[k.to_pylist() for k in keys], strict=True) if keys else [()] * count):
            groups[tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in values)].append(i)
        first = pa.array([members[0] for members in groups.values()], pa.int64())
        out: dict = {k: v.take(first) for k, v in zip(query.group.keys, keys, strict=True)}
        out[WINDOW_END] = pa.array([end] * len(groups), pa.int64()).cast(WINDOW_END.type)
        for aggregate in query.group.aggregates:
            values = (
                [None] * count if aggregate.arg is None else evaluate(aggregate.arg, env, count, errors).to_pylist()
            )
            found = [_aggregate(aggregate, [values[i] for i in members]) for members in groups.values()]
            out[aggregate] = pa.array(found, aggregate.type)
        env, count = out, len(groups)
        if query.group.having is not None:
            held = mask(query.group.having, env, count, errors)
            env, count = {e: v.filter(pa.array(held)) for e, v in env.items()}, int(held.sum())
    columns = [evaluate(o.expr, env, count, errors).cast(o.expr.type) for o in query.outputs]
    return pa.Table.from_arrays(columns, schema=query.schema)


def _aggregate(aggregate: Aggregate, values: list) -> object:
    name = aggregate.name.lower()
    if name in ("list", "string_agg", "quantile_cont", "quantile_disc"):
        return _of_sorted(name, aggregate.parameter, values)
    if aggregate.arg is None:
        return len(values)
    values = [v for v in values if v is not None]
    if name == "count":
        return (
            len({repr(0.0 if v == 0 and isinstance(v, float) else v) for v in values})
            if aggregate.distinct
            else len(values)
        )
    if not values or (name in ("stddev_samp", "var_samp") and len(values) < 2):
        return None
    if name in ("min", "max"):
        numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
        if name == "max":
            return max(numbers) if len(numbers) == len(values) else math.nan
        return min(numbers) if numbers else math.nan
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        total = sum(values)
        return (total if name == "sum" else total / len(values)) if name in ("sum", "avg") else math.nan
    exact = [Fraction(v) for v in values]
    total = sum(exact)
    if name == "sum":
        if isinstance(values[0], float):
            return float(total)
        with localcontext(Context(prec=80)):
            decimal = Decimal(total.numerator) / Decimal(total.denominator)
            return decimal if abs(total) * 10**aggregate.type.scale < 10**38 else None
    if name == "avg":
        return float(total / len(exact))
    variance = float(sum((v - total / len(exact)) ** 2 for v in exact) / (len(exact) - 1))
    return math.sqrt(variance) if name == "stddev_samp" else variance


def _of_sorted(name: str, parameter: object, values: list) -> object:
    ordered = sorted((v for v in values if v is not None), key=lambda v: (isinstance(v, float) and math.isnan(v), v))
    if name == "list":
        return ordered + [None] * (len(values) - len(ordered))
    if not ordered:
        return None
    if name == "string_agg":
        return str(parameter).join(ordered)
    share = Fraction(str(parameter))
    if name == "quantile_disc":
        return ordered[max(math.ceil(len(ordered) * share), 1) - 1]
    at = (len(ordered) - 1) * float(share)
    low, high, part = float(ordered[math.floor(at)]), float(ordered[math.ceil(at)]), at - math.floor(at)
    return low * (1 - part) + high * part if part else low
