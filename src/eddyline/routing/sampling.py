"""Sampling: shows a few tuples to every step that they may take, and keeps only the counts.

So the router learns about steps that it does not choose. The tuples that a sample makes are dropped.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount
from eddyline.plan.steps import Select
from eddyline.routing.packet import SAMPLE, Packet
from eddyline.routing.payload import Payload
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.routing.steps.probe import ProbeStep


class Sampling:
    """Shows samples to all steps of an entry."""

    def __init__(self, probe: ProbeStep, payload: Payload, clock: Callable[[], float], enough: int) -> None:
        """`enough` is the most tuples that a step may make of a sample."""
        self._probe, self._payload, self._clock, self._enough = probe, payload, clock, enough

    def shown(
        self, entry: Entry, packet: Packet, samples: int, late: frozenset[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How many tuples every step would make of each sampled tuple of a packet, and how many seconds each step took.
        Late steps see only the tuples that the chosen step lets through; for the others their count is NaN."""
        sample = packet.take(np.arange(0, packet.size, -(-packet.size // samples)))
        errors, seconds = ErrorCount(), np.zeros(len(entry.steps))
        counts = np.full((sample.size, len(entry.steps)), np.nan)
        chosen = entry.steps.index(entry.chosen) if entry.chosen is not None else 0
        for number in sorted(range(len(entry.steps)), key=lambda n: (n != chosen, n in late)):
            begin = self._clock()
            which = np.flatnonzero(counts[:, chosen]) if number in late else np.arange(sample.size)
            if which.size:
                some = sample.take(which) if number in late else sample
                counts[which, number] = self._made(entry.steps[number], some, errors)
            seconds[number] = self._clock() - begin
        return counts, seconds

    def _made(self, traffic: Traffic, packet: Packet, errors: ErrorCount) -> NDArray[np.float64]:
        """How many tuples a step makes of each tuple. A step that makes more than `enough` is stopped: it will not be
        chosen anyway."""
        if isinstance(traffic.step, Select):
            return self._payload.mask(traffic.step.predicate, packet, errors).astype(np.float64)
        made = np.zeros(packet.size)
        for piece in self._probe.pieces(traffic, traffic.step, packet.numbered(), errors):
            made += np.bincount(piece.rows[SAMPLE], minlength=packet.size)
            if made.sum() > self._enough:
                break
        return made
