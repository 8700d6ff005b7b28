"""The gatherer: collects complete tuples and gathers their payload for the results.

Complete packets are merged until there are enough rows or the batch ends. Then the payload columns are gathered, once.
Gathering comes before expiry, so every row number in a complete tuple can still be read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eddyline.engine.groups.results import Results, Values
from eddyline.routing.packet import Packet, alike, in_parts, merged
from eddyline.state.stem import SteM
from eddyline.state.view import View


class Gatherer:
    """Gathers the payload of complete tuples, many at a time."""

    def __init__(
        self, gather: Callable[[Packet], Values], results: Results, stems: Sequence[SteM | View], enough: int
    ) -> None:
        """`stems` begin with those of the sources; `enough` is the number of tuples that are gathered together."""
        self._gather, self._results, self._stems, self._enough = gather, results, stems, enough
        self._ready: list[Packet] = []
        self._rows = 0

    def add(self, packet: Packet) -> None:
        """Add complete tuples."""
        self._ready.append(packet)
        self._rows += packet.size
        if self._rows >= self._enough:
            self.flush()

    def flush(self) -> None:
        """Gather the collected tuples and pass them to the results."""
        ready = self._ready
        self.clear()
        for packet in map(merged, alike(ready)):
            for part, values in in_parts(packet, lambda some: (some, self._gather(some))):
                self._results.add(part, values, [stem.rows for stem in self._stems])

    def clear(self) -> None:
        """Drop the collected tuples."""
        self._ready, self._rows = [], 0
