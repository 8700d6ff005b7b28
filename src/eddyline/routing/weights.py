"""Tuples with weights, which stand for several combinations, in the eddy of one plan: how they are made, and what they
carry.

In flight such a tuple is a tuple like any other, with one additional component for each part with a weight: the number
of the part's tuple in its SteM. A join of parts with weights w1, w2, ... stands for w1 * w2 * ... combinations; the
state of an aggregate over one part is repeated as often as the weights of the others say.

When tuples are built into a SteM with weights, interchangeable tuples of a packet (plan/grouped.py) become one. While a
parallel track runs, tuples with an old row and tuples without one stay apart: the running plan outputs the former, the
track the latter, and the group-by above adds them up. The same holds while partition groups are on a track to another
slot, which makes the results of new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from eddyline.bound.aggregates import accumulator, weighed
from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr, sources_of
from eddyline.bound.group_ids import Ids, decoded, group_ids, plain, representatives
from eddyline.plan.grouped import Grouped
from eddyline.plan.plan import Plan
from eddyline.routing.boundaries import boundaries
from eddyline.routing.packet import SAMPLE, Packet, in_parts, merged
from eddyline.routing.scope import OldRows
from eddyline.routing.tracked_rows import TrackedRows
from eddyline.state.carried import Carried
from eddyline.state.rows import Rows


def part_of(stem: int) -> int:
    """The component that refers to a tuple of this SteM."""
    return ~stem


class Weights:
    """Computes and looks up the weights of the tuples of one plan."""

    def __init__(
        self,
        plan: Plan,
        rows: Sequence[Rows],
        gather: Callable[[Packet, Sequence[Expr]], dict[Expr, pa.Array]],
        errors: ErrorCount,
        old: OldRows | None,
        tracked: TrackedRows | None = None,
    ) -> None:
        """`old` distinguishes old rows from new ones while a parallel track to another plan runs, and `tracked` while
        partition groups are on a track to another slot."""
        group = plan.query.group
        assert group is not None and group.slide is not None
        self._plan, self._rows, self._gather, self._errors, self._slide = plan, rows, gather, errors, group.slide
        self._old, self._tracked = old, tracked
        self._arguments = [a.arg for a in group.aggregates]
        self._accumulators = [accumulator(a) for a in group.aggregates]

    def looked_up(self, packet: Packet) -> Packet:
        """The same tuples, with their carried columns in place of the parts with weights."""
        parts = [self._carried(~part, rows) for part, rows in packet.rows.items() if part < SAMPLE]
        if not parts:
            return packet
        weights = np.prod([part.weights for part in parts], axis=0)
        states = {}
        for part in parts:
            others = weights // part.weights
            for number, state in part.states.items():
                states[number] = state if len(parts) == 1 else self._accumulators[number].repeated(state, others)
        rows = {s: r for s, r in packet.rows.items() if s >= 0}
        return Packet(rows, packet.signature, packet.numbers, packet.size, Carried(weights, states))

    def _carried(self, stem: int, rows: Ids) -> Carried:
        store = self._rows[stem].carried
        assert store is not None
        return store.gather(rows)

    def combined(self, stem: int, packet: Packet) -> Packet:
        """The tuples to build into a SteM with weights: one for each group, with the weights and states of its tuples
        combined. If the packet is processed in parts, a group may have one tuple for each part, as if the parts were
        packets."""
        return merged(list(in_parts(packet, lambda some: self._combined(stem, some))))

    def _combined(self, stem: int, packet: Packet) -> Packet:
        packet, of = self.looked_up(packet), self._plan.grouped[stem]
        weights, states = (None, {}) if packet.carried is None else packet.carried
        arguments = {n: arg for n in of.aggregates if n not in states and (arg := self._arguments[n]) is not None}
        values = self._gather(packet, [*arguments.values(), *of.values, *of.columns])
        ids, count = np.arange(packet.size), packet.size
        if of.combines:
            ids, count = group_ids(self._key(of, packet, values), packet.size)
        together = {}
        for number in of.aggregates:
            how = self._accumulators[number]
            if number in states:
                together[number] = how.merge(states[number], ids, count)
            else:
                argument = decoded(evaluate(arguments[number], values, packet.size, self._errors))
                together[number] = weighed(how, argument, weights, ids, count)
        total = np.zeros(count, np.int64)
        np.add.at(total, ids, 1 if weights is None else weights)
        some = packet.take(representatives(ids, count))
        return Packet(some.rows, some.signature, some.numbers, count, Carried(total, together))

    def _key(self, of: Grouped, packet: Packet, values: dict[Expr, pa.Array]) -> list[pa.Array | Ids]:
        """The columns that distinguish tuples."""
        bases, rows, size = self._rows, packet.rows, packet.size
        key: list[pa.Array | Ids] = [*boundaries(self._plan.query, self._slide, bases, rows, size)]
        key += [bases[source].times.values[rows[source]] for source in of.times]
        for on in of.keys:
            (source,) = sources_of(on)
            key.append(bases[source].key_parts(on, rows[source]))
        key += [_as_it_is(values[column]) for column in of.columns]
        key += [plain(evaluate(value, values, size, ErrorCount())) for value in of.values]
        key += [rows[source] for source in of.rows]
        key += [] if self._old is None else [self._old.among(packet).astype(np.int64)]
        if self._tracked is not None and self._tracked.on:
            key.append(self._tracked.new(packet).astype(np.int64))
        return key


def _as_it_is(array: pa.Array) -> pa.Array:
    """Values in a form in which all differences count, also between -0.0 and 0.0."""
    array = decoded(array)
    if pa.types.is_floating(array.type):
        return array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[array.type.bit_width])
    return array
