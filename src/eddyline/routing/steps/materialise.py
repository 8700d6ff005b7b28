"""The step that builds tuples into an intermediate SteM: the output of an operator, for the operator above it.

The SteM is not probed meanwhile: the tuples come from probes in the operator below.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eddyline.routing.packet import Packet
from eddyline.routing.weights import Weights, part_of
from eddyline.state.rows import Rows
from eddyline.state.stem import SteM
from eddyline.state.view import View


class MaterialiseStep:
    """Builds tuples into SteMs. It never builds into a view, whose rows another eddy builds."""

    def __init__(self, stems: Sequence[SteM | View], rows: Sequence[Rows], weights: Weights | None) -> None:
        self._stems = {number: stem for number, stem in enumerate(stems) if isinstance(stem, SteM)}
        self._rows, self._weights = rows, weights

    def into(self, target: int, packet: Packet, number: int) -> Packet:
        """Build tuples after the slot has built `number` tuples; returns them as they start in the operator above. If
        the SteM has weights, interchangeable tuples become one, so there may be fewer."""
        stem = self._stems[target]
        carries = stem.rows.carried is not None
        if self._weights is not None and carries:
            packet = self._weights.combined(target, packet)
        stem.rows.append_tuples(packet.rows, self._rows, packet.carried)
        first, last = stem.build(number, packet.size)
        rows = {**packet.rows, part_of(target): np.arange(first, last)} if carries else packet.rows
        return Packet(rows, packet.signature, np.array([number]), packet.size)
