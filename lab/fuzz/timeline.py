"""Event times, order of arrival and the cut into batches of random cases.

A row arrives at its event time plus a delay of at most its stream's lateness, so it is never late whatever the cut;
rows that are meant to be late get a longer delay. Streams are read side by side, staggered, or one after the other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.testing.case import Batch, Rows

UNITS = {
    "DAY": 86_400_000_000,
    "HOUR": 3_600_000_000,
    "MINUTE": 60_000_000,
    "SECOND": 1_000_000,
    "MILLISECOND": 1_000,
    "MICROSECOND": 1,
}


def amount(micros: int) -> tuple[int, str]:
    """A length of time as a number of the largest unit that divides it.

    >>> amount(90_000_000), amount(-1500)
    ((90, 'SECOND'), (-1500, 'MICROSECOND'))
    """
    unit = next(u for u, size in UNITS.items() if micros % size == 0) if micros else "SECOND"
    return micros // UNITS[unit], unit


@dataclass(frozen=True)
class Timeline:
    """The grid of time of a case: event times are `base` plus a multiple of `step` within `horizon` steps."""

    base: int
    step: int
    horizon: int

    def times(self, rng: random.Random, rows: int, dead: float) -> list[int | None]:
        """Event times, with ties where the horizon is short; `dead` is the share of NULLs."""
        at = [self.base + self.step * rng.randrange(self.horizon) for _ in range(rows)]
        return [None if dead and rng.random() < dead else t for t in at]


def timeline(rng: random.Random) -> Timeline:
    """A random grid, sometimes across 1970."""
    step = rng.choice([1, 1_000, 1_000_000, 1_000_000, 60_000_000])
    horizon = rng.choice([6, 12, 25, 40, 100])
    base = rng.choice([0, 1_704_067_200_000_000, 1_704_067_200_000_000, 1_709_166_600_000_000, -(horizon // 2) * step])
    return Timeline(base, step, horizon)


def arrivals(
    rng: random.Random, times: Mapping[str, Sequence[int | None]], lateness: Mapping[str, int], late: float, span: int
) -> list[tuple[str, int]]:
    """(stream, row number) of every row in the order of arrival."""
    mode = rng.choice(["together", "together", "staggered", "in turn"])
    keyed: list[tuple[float, float, str, int]] = []
    for number, (stream, at) in enumerate(times.items()):
        ahead = {"together": 0.0, "staggered": rng.random() * span, "in turn": 3.0 * number * span}[mode]
        known = [t for t in at if t is not None] or [0]
        for row, t in enumerate(at):
            delay = rng.random() * lateness[stream] if lateness[stream] else 0.0
            if late and rng.random() < late:
                delay += rng.random() * span
            keyed.append(((rng.choice(known) if t is None else t) + delay + ahead, rng.random(), stream, row))
    return [(stream, row) for _, _, stream, row in sorted(keyed)]


def cut(
    rng: random.Random,
    order: Sequence[tuple[str, int]],
    rows: Mapping[str, pa.RecordBatch],
    undo: bool,
    cuts: Sequence[int],
) -> tuple[Batch, ...]:
    """The rows in that order as batches, with streams that end early and batches that are wound back. The number of
    cuts is drawn from `cuts`."""
    places = sorted(rng.randint(0, len(order)) for _ in range(rng.choice(cuts)))
    if len(order) > 1 and rng.random() < 0.06:  # one row at a time, for a while
        first = rng.randrange(1, len(order))
        places = list(range(first, min(first + 15, len(order))))
    pieces = [order[a:b] for a, b in zip([0, *places], [*places, len(order)], strict=True)]
    last = {s: max((i for i, p in enumerate(pieces) if any(n == s for n, _ in p)), default=0) for s in rows}
    ended: list[list[str]] = [[] for _ in pieces]
    for stream, at in last.items():
        if rng.random() < 0.4:
            ended[rng.randint(at, len(pieces) - 1)].append(stream)
    batches = []
    for i, piece in enumerate(pieces):
        undone = _undone(rng, pieces, i, rows) if undo and rng.random() < 0.5 else None
        batches.append(Batch(_rows(rng, piece, rows), tuple(ended[i]), undone))
    return tuple(batches)


def _rows(rng: random.Random, piece: Sequence[tuple[str, int]], rows: Mapping[str, pa.RecordBatch]) -> Rows:
    """A piece as record batches, one or two for each stream, in any order."""
    found = []
    for stream in sorted({s for s, _ in piece}):
        at = [row for s, row in piece if s == stream]
        middle = rng.randint(0, len(at)) if rng.random() < 0.2 else len(at)
        for part in (at[:middle], at[middle:]):
            if part:
                found.append((stream, rows[stream].take(pa.array(np.array(part, dtype=np.int64)))))
    rng.shuffle(found)
    return tuple(found)


def _undone(
    rng: random.Random, pieces: Sequence[Sequence[tuple[str, int]]], at: int, rows: Mapping[str, pa.RecordBatch]
) -> Rows:
    """Rows to wind back before a batch: the batch in another order, a part of it, or the batch and the next one."""
    piece = [*pieces[at], *(pieces[at + 1] if at + 1 < len(pieces) and rng.random() < 0.3 else [])]
    rng.shuffle(piece)
    return _rows(rng, piece[: rng.randint(0, len(piece))] if rng.random() < 0.3 else piece, rows)
