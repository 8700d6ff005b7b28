"""A packet: tuples with the same history.

In flight a tuple is one row number per source of its span and the number of the build that started it, which bounds
what it may match (the TimeStamp rule), and nothing else. All tuples of a packet have the same signature; they may come
of several builds: then `numbers` has one element a tuple, else just one.

Tuples that stand for several have a component more for each SteM that they have such a part of: which tuple of it that
is. When they are complete, or are built again, what these carry is looked up (weights.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eddyline.plan.plan import Signature
from eddyline.state.carried import Carried, sliced, together
from eddyline.state.column import RowNumbers
from eddyline.state.stores.store import TooMuchText

_T = TypeVar("_T")

SAMPLE = -1
"""A component that is no row of a source: which tuple of a sample it was."""


@dataclass(slots=True)
class Packet:
    """`rows[s]` are the row numbers in the SteM of source s; they all have the same length."""

    rows: Mapping[int, RowNumbers]
    signature: Signature
    numbers: NDArray[np.int64]
    size: int
    carried: Carried | None = None
    """What tuples carry that are complete or to be built, if some stand for several."""

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Packet:
        """Some of the tuples."""
        rows = {s: r[which] for s, r in self.rows.items()}
        return Packet(rows, self.signature, self._numbers_of(which), next(iter(rows.values())).size)

    def kept(self, keep: NDArray[np.bool_]) -> Packet:
        """The tuples for which it says yes: this packet itself if it does for all."""
        return self if keep.all() else self.take(keep)

    def joined(self, tuples: NDArray[np.int64], rows: Mapping[int, RowNumbers], after: Signature) -> Packet:
        """Tuples, each with a match: the rows of its components."""
        both = {**{s: r[tuples] for s, r in self.rows.items()}, **rows}
        return Packet(both, after, self._numbers_of(tuples), tuples.size)

    def passed(self, selection: int) -> Packet:
        """The same tuples, with one more selection done."""
        span, done = self.signature
        return Packet(self.rows, (span, done | 1 << selection), self.numbers, self.size)

    def numbered(self) -> Packet:
        """The same tuples, each with its place as a component of its own, by which what comes of them is counted."""
        rows = {**self.rows, SAMPLE: np.arange(self.size)}
        return Packet(rows, self.signature, self.numbers, self.size)

    def halves(self) -> list[Packet]:
        """The tuples in two packets."""
        middle = self.size // 2
        parts = []
        for some in (slice(0, middle), slice(middle, self.size)):
            part = self.take(some)
            part.carried = None if self.carried is None else sliced(self.carried, some)
            parts.append(part)
        return parts

    def _numbers_of(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> NDArray[np.int64]:
        return self.numbers if self.numbers.size == 1 else self.numbers[which]


def started(source: int, first: int, last: int, number: int) -> Packet:
    """The rows first..last-1 that source has just built."""
    return Packet({source: np.arange(first, last)}, (1 << source, 0), np.array([number]), last - first)


def merged(packets: Sequence[Packet]) -> Packet:
    """The tuples of several packets of one signature."""
    first = packets[0]
    if len(packets) == 1:
        return first
    rows = {s: np.concatenate([p.rows[s] for p in packets]) for s in first.rows}
    size = sum(p.size for p in packets)
    carried = together([p.carried for p in packets if p.carried is not None]) if first.carried is not None else None
    if all(p.numbers is first.numbers for p in packets):
        return Packet(rows, first.signature, first.numbers, size, carried)
    numbers = [p.numbers if p.numbers.size == p.size else np.full(p.size, p.numbers[0]) for p in packets]
    return Packet(rows, first.signature, np.concatenate(numbers), size, carried)


def in_parts(packet: Packet, do: Callable[[Packet], _T]) -> Iterator[_T]:
    """What `do` gives for all tuples of a packet: at once or, where their values are too much for one array, for one
    part after the other. `do` must gather before it does anything that cannot be done again."""
    try:
        found = do(packet)
    except TooMuchText:
        if packet.size < 2:
            raise
        for half in packet.halves():
            yield from in_parts(half, do)
    else:
        yield found


def alike(packets: Sequence[Packet]) -> list[list[Packet]]:
    """Complete tuples, those together that can be merged: they carry states of the same aggregates, or nothing."""
    found: dict[frozenset[int] | None, list[Packet]] = {}
    for packet in packets:
        found.setdefault(None if packet.carried is None else frozenset(packet.carried.states), []).append(packet)
    return list(found.values())
