"""The step that drops tuples which have left a ROWS window (rows_windows.py says why checking early is allowed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import Clock
from eddyline.state.rows import Rows, newest


class WindowStep:
    """Checks the components whose sources have a ROWS window."""

    def __init__(self, clocks: Mapping[int, Clock], rows: Sequence[Rows]) -> None:
        self._clocks, self._rows = clocks, rows

    def within(self, packet: Packet) -> Packet:
        """The tuples whose components are all in their windows at the time of the newest."""
        times = newest(self._rows, packet.rows, packet.size)
        keep = np.ones(packet.size, np.bool_)
        for source, clock in self._clocks.items():
            if source in packet.rows:
                keep &= self._rows[source].ordinals(packet.rows[source]) >= clock.least(times)
        return packet.kept(keep)
