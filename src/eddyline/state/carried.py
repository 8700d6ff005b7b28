"""Carried columns: for how many combinations a tuple stands, and the states of aggregates over them.

A tuple that an operator made from several has a *weight*, the number of combinations, and for each aggregate whose
argument it determines the state over all of them (bound/aggregates.py). Nothing else is kept of the combinations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from eddyline.bound.aggregates import State
from eddyline.state.arena import Arena
from eddyline.state.column import Column, RowNumbers
from eddyline.state.stores.fixed import FixedStore
from eddyline.state.stores.heap import BytesStore


class Carried(NamedTuple):
    """The weights of tuples, and their states by the number of the aggregate."""

    weights: RowNumbers
    states: Mapping[int, State]


class CarriedStore:
    """Append-only store of the carried columns of a SteM's tuples, in its arena."""

    def __init__(self, arena: Arena, states: Sequence[tuple[int, str, pa.DataType]]) -> None:
        self._weights = Column(arena, "i8")
        self._states = {(number, name): _store(arena, type) for number, name, type in states}

    def append(self, carried: Carried) -> None:
        """Add the weights and states of new tuples."""
        self._weights.append(carried.weights)
        for (number, name), column in self._states.items():
            column.append(carried.states[number][name])

    def gather(self, rows: RowNumbers) -> Carried:
        """The weights and states of these tuples."""
        states: dict[int, dict[str, pa.Array]] = {}
        for (number, name), column in self._states.items():
            states.setdefault(number, {})[name] = column.gather(rows)
        weights: RowNumbers = self._weights.values[rows]
        return Carried(weights, states)

    def mean_weight(self, rows: RowNumbers) -> float:
        """The mean number of combinations for which one of these tuples stands."""
        return float(self._weights.values[rows].mean())

    @property
    def parts(self) -> list[Column | FixedStore | BytesStore]:
        """Its columns."""
        return [self._weights, *self._states.values()]


def together(parts: Sequence[Carried]) -> Carried:
    """Concatenate the weights and states of several packets, which have the same aggregates."""
    states = {
        number: {name: pa.concat_arrays([p.states[number][name] for p in parts]) for name in state}
        for number, state in parts[0].states.items()
    }
    return Carried(np.concatenate([p.weights for p in parts]), states)


def sliced(carried: Carried, some: slice) -> Carried:
    """The weights and states of some of the tuples."""
    rows = some.stop - some.start
    states = {
        number: {name: column.slice(some.start, rows) for name, column in state.items()}
        for number, state in carried.states.items()
    }
    return Carried(carried.weights[some], states)


def _store(arena: Arena, type: pa.DataType) -> FixedStore | BytesStore:
    t = pa.types
    if t.is_string(type) or t.is_large_string(type) or t.is_binary(type) or t.is_large_binary(type):
        return BytesStore(arena, type)
    return FixedStore(arena, type)
