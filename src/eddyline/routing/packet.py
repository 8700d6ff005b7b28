"""A packet: tuples with the same history.

In flight, a tuple consists of one row number per source of its span and of the number of the build that started it,
which bounds the rows that it may match (the TimeStamp rule). All tuples of a packet have the same signature. They may
come from several builds: then `numbers` has one element per tuple; otherwise it has a single element.

A tuple that stands for several has an additional component for each part with a weight: the number of the part's tuple
in its SteM. The carried columns of these parts are looked up when the tuple is complete or is built again (weights.py).
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
"""A component that is not a row of a source: the number of a tuple in its sample."""


@dataclass(slots=True)
class Packet:
    """`rows[s]` are the row numbers in the SteM of source s; they all have the same length."""

    rows: Mapping[int, RowNumbers]
    signature: Signature
    numbers: NDArray[np.int64]
    size: int
    carried: Carried | None = None
    """The carried columns of tuples that are complete or about to be built, if some tuples stand for several."""

    def take(self, which: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Packet:
        """A packet of some of the tuples."""
        rows = {s: r[which] for s, r in self.rows.items()}
        return Packet(rows, self.signature, self._numbers_of(which), next(iter(rows.values())).size)

    def kept(self, keep: NDArray[np.bool_]) -> Packet:
        """The tuples where `keep` is true; this packet itself if that is all of them."""
        return self if keep.all() else self.take(keep)

    def joined(self, tuples: NDArray[np.int64], rows: Mapping[int, RowNumbers], after: Signature) -> Packet:
        """The given tuples of this packet, each joined with a match, whose components have these rows."""
        both = {**{s: r[tuples] for s, r in self.rows.items()}, **rows}
        return Packet(both, after, self._numbers_of(tuples), tuples.size)

    def passed(self, selection: int) -> Packet:
        """The same tuples with one more selection passed."""
        span, done = self.signature
        return Packet(self.rows, (span, done | 1 << selection), self.numbers, self.size)

    def numbered(self) -> Packet:
        """The same tuples, each with its number as an additional component, so that the tuples made from it can be
        counted."""
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
    """A packet of the rows first..last-1, which the source has just built."""
    return Packet({source: np.arange(first, last)}, (1 << source, 0), np.array([number]), last - first)


def merged(packets: Sequence[Packet]) -> Packet:
    """One packet of the tuples of several packets, which have the same signature."""
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
    """The results of `do` for all tuples of a packet: in one call or, where the values are too much for one array, part
    by part. `do` must gather before it does anything that cannot be repeated."""
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
    """Divide complete packets into lists that can be merged: their tuples carry states of the same aggregates, or
    none."""
    found: dict[frozenset[int] | None, list[Packet]] = {}
    for packet in packets:
        found.setdefault(None if packet.carried is None else frozenset(packet.carried.states), []).append(packet)
    return list(found.values())
