"""Shrink a failing case: leave out parts and rows as long as it still fails.

It is greedy, in rounds until nothing more can be left out: undone batches, conditions, outputs, keys, HAVING, whole
FROM items, windows, the cut into batches, columns, then rows by halves and quarters down to single rows (delta
debugging).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from eddyline.testing.case import Batch, Case, Rows

SIMPLEST: dict[str, tuple[object, ...]] = {
    "durable": (None,),
    "spill": (None,),
    "balance": (None,),
    "eager": (None,),
    "migrate": (None,),
    "execution": ("unsynchronized",),
    "plan": ("mjoin",),
    "slots": (1, 2, 3),
    "groups": (256, 7),
    "router": ("fixed", "random"),
    "packet": (None, 1000),
    "input_batch": (None,),
    "reroute_every": (1000,),
    "explore": (0.0,),
    "seed": (0,),
}
"""Simpler values of settings, the simplest first: a setting is irrelevant to a difference that remains with such a
value."""

Fails = Callable[[Case], bool]
"""Whether a case still shows the difference; also False for a case that is no longer a valid script."""


def shrink(case: Case, fails: Fails, seconds: float = 20.0, clock: Callable[[], float] = time.monotonic) -> Case:
    """A smaller case that still fails, found within about `seconds` seconds."""
    deadline = clock() + seconds
    smaller = True
    while smaller and clock() < deadline:
        smaller = False
        for step in (_fewer_parts, _simpler_run, _fewer_batches, _fewer_columns):
            progress = True
            while progress and clock() < deadline:
                progress = False
                for candidate in step(case):
                    if clock() > deadline:
                        break
                    if fails(candidate):
                        case, progress, smaller = candidate, True, True
                        break
        case, fewer = _fewer_rows(case, fails, lambda: clock() > deadline)
        smaller |= fewer
    return case


def _fewer_parts(case: Case) -> Iterator[Case]:
    select = case.select
    if select.having:
        yield replace(case, select=replace(select, having=None))
    for name in ("where", "keys", "outputs"):
        parts = getattr(select, name)
        for i in range(len(parts)):
            if len(parts) > 1 or name != "outputs":
                yield replace(case, select=replace(select, **{name: parts[:i] + parts[i + 1 :]}))
    for i, gone in enumerate(select.sources):
        if len(select.sources) > 1:
            named = f"{gone.alias}."
            outputs = tuple(o for o in select.outputs if named not in o) or (
                "COUNT(*) AS o0" if select.keys else "1 AS o0",
            )
            smaller = replace(
                select,
                sources=select.sources[:i] + select.sources[i + 1 :],
                where=tuple(w for w in select.where if named not in w),
                keys=tuple(k for k in select.keys if named not in k),
                outputs=outputs,
            )
            settings = {**case.settings, "plan": _without_alias(str(case.settings.get("plan", "mjoin")), gone.alias)}
            yield _unused_gone(replace(case, select=smaller, settings=settings))
    for i, source in enumerate(select.sources):
        if source.window and not source.slides:
            bare = (*select.sources[:i], replace(source, window=""), *select.sources[i + 1 :])
            yield replace(case, select=replace(select, sources=bare))


def _without_alias(plan: str, alias: str) -> str:
    """A tree without one of its leaves, and without operators that lose all their leaves. No operator is late, because
    a late one might have become the root."""
    tree = re.sub(rf"\b{alias}\b|[!+]", "", plan)
    while (smaller := re.sub(r"\(\s*\)", "", tree)) != tree:
        tree = smaller
    return tree if "(" in tree else "mjoin"


def _unused_gone(case: Case) -> Case:
    """The case without the streams that FROM does not name."""
    used = {s.stream for s in case.select.sources}

    def only(rows: Rows) -> Rows:
        return tuple((n, r) for n, r in rows if n in used)

    return replace(
        case,
        streams=tuple(s for s in case.streams if s.name in used),
        tables={n: t for n, t in case.tables.items() if n in used},
        batches=tuple(
            Batch(only(b.rows), tuple(e for e in b.ended if e in used), None if b.undone is None else only(b.undone))
            for b in case.batches
        ),
    )


def _simpler_run(case: Case) -> Iterator[Case]:
    for name, values in SIMPLEST.items():
        now = case.settings.get(name, values[0])
        for value in values[: values.index(now)] if now in values else values:
            yield replace(case, settings={**case.settings, name: value})
    if case.select.joined:
        yield replace(case, select=replace(case.select, joined=False))
    for i, batch in enumerate(case.batches):
        if batch.undone is not None:
            yield _with_batch(case, i, replace(batch, undone=None))
        for gone in batch.ended:
            yield _with_batch(case, i, replace(batch, ended=tuple(e for e in batch.ended if e != gone)))


def _fewer_batches(case: Case) -> Iterator[Case]:
    batches = case.batches
    for i in range(len(batches) - 1):
        both = Batch(batches[i].rows + batches[i + 1].rows, batches[i].ended + batches[i + 1].ended, batches[i].undone)
        yield replace(case, batches=(*batches[:i], both, *batches[i + 2 :]))
    for i in range(len(batches)):
        if len(batches) > 1:
            yield replace(case, batches=batches[:i] + batches[i + 1 :])


def _fewer_columns(case: Case) -> Iterator[Case]:
    for i, stream in enumerate(case.streams):
        for name in stream.schema.names:
            if name == stream.time or len(stream.schema) == 1:
                continue
            kept = [n for n in stream.schema.names if n != name]

            def only(rows: Rows, stream: str = stream.name, kept: list[str] = kept) -> Rows:
                return tuple((n, r.select(kept) if n == stream else r) for n, r in rows)

            smaller = replace(stream, schema=pa.schema([stream.schema.field(n) for n in kept]))
            yield replace(
                case,
                streams=(*case.streams[:i], smaller, *case.streams[i + 1 :]),
                tables={n: t.select(kept) if n == stream.name else t for n, t in case.tables.items()},
                batches=tuple(
                    replace(b, rows=only(b.rows), undone=None if b.undone is None else only(b.undone))
                    for b in case.batches
                ),
            )


def _with_batch(case: Case, at: int, batch: Batch) -> Case:
    return replace(case, batches=(*case.batches[:at], batch, *case.batches[at + 1 :]))


def _fewer_rows(case: Case, fails: Fails, late: Callable[[], bool]) -> tuple[Case, bool]:
    """Leave out runs of rows: long runs first."""
    fewer, size = False, max(1, case.row_count // 2)
    while True:
        start = 0
        while start < case.row_count:
            if late():
                return case, fewer
            candidate = _without(case, start, start + size)
            if fails(candidate):
                case, fewer = candidate, True
            else:
                start += size
        if size == 1:
            return case, fewer
        size = max(1, size // 2)


def _without(case: Case, start: int, stop: int) -> Case:
    """The case without rows number start to stop, counted over all batches and then the tables."""
    seen = 0

    def cut(rows: pa.RecordBatch) -> pa.RecordBatch:
        nonlocal seen
        numbers = np.arange(seen, seen + rows.num_rows)
        seen += rows.num_rows
        kept = (numbers < start) | (numbers >= stop)
        return rows if kept.all() else rows.filter(pa.array(kept))

    def cut_all(rows: Rows) -> Rows:
        return tuple((n, r) for n, r in ((n, cut(r)) for n, r in rows) if r.num_rows)

    batches = tuple(replace(b, rows=cut_all(b.rows)) for b in case.batches)
    return replace(case, batches=batches, tables={n: cut(t) for n, t in case.tables.items()})
