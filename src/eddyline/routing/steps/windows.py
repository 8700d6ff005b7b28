"""The step that drops tuples that have left a ROWS window (rows_windows.py says why checking early is allowed)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import PlacesInWindow
from eddyline.state.rows import Rows, newest


class WindowStep:
    """Checks the components whose sources have a ROWS window."""

    def __init__(self, rows_windows: Mapping[int, PlacesInWindow], rows: Sequence[Rows]) -> None:
        self._rows_windows, self._rows = rows_windows, rows

    def within(self, packet: Packet) -> Packet:
        """The tuples whose components are all in their windows at the time of the newest component."""
        times = newest(self._rows, packet.rows, packet.size)
        keep = np.ones(packet.size, np.bool_)
        for source, window in self._rows_windows.items():
            if source in packet.rows:
                keep &= self._rows[source].ordinals(packet.rows[source]) >= window.least(times)
        return packet.kept(keep)
