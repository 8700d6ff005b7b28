"""How groups move to another slot, chosen for each move: by moving state or by parallel track (balance/way.py).

A parallel track must end, so all sources whose rows move with their groups must be streams whose rows expire. In a
query with a ROWS window rows wait to be counted and know by then whether a slot builds them, so there are no tracks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from eddyline.balance.decided import GroupMove
from eddyline.balance.tuning import DEFAULT, BalanceTuning
from eddyline.balance.way import BalanceMode, ChosenWay, chosen_way
from eddyline.bound.model import BoundQuery
from eddyline.plan.bounds import UNBOUND, Bounds
from eddyline.protocol.home import Home
from eddyline.protocol.record import Record
from eddyline.spill.accounts import KEPT


class Ways:
    """Chooses how groups of one job move."""

    def __init__(
        self, mode: BalanceMode, window: float | None, refusal: str = "", tuning: BalanceTuning = DEFAULT
    ) -> None:
        """A track takes `window` seconds of event time; None if it is refused, for a reason."""
        self._mode, self._window, self._refusal, self._tuning = mode, window, refusal, tuning
        self._newest: dict[str, int] = {}
        self._seconds = 0.0
        """The event time of the last batches, decayed like the number of rows that arrived (spill/accounts.py)."""

    def observe(self, records: Sequence[Record]) -> None:
        """The records of a batch."""
        newest = dict(self._newest)
        for record in records:
            for stream, time in record.newest.items():
                newest[stream] = max(time, newest.get(stream, time))
        forward = [newest[stream] - time for stream, time in self._newest.items()]
        self._newest, self._seconds = newest, KEPT * (self._seconds + max(forward, default=0) / 1e6)

    def choose(self, move: GroupMove, records: Sequence[Record]) -> ChosenWay:
        """How these groups move."""
        table = next(record.spillable.table for record in records if record.slot == move.sender)
        table = table[np.isin(table["group"], move.groups)]
        rows, arriving = float(table["rows"].sum()), float(table["arrived"].sum()) / max(self._seconds, 1e-6)
        known = rows, arriving, self._window, self._tuning.open_cost, self._refusal
        return chosen_way(self._mode, move.measure, *known)


def ways_of(home: Home, tuning: BalanceTuning = DEFAULT) -> Ways:
    """Those of a job whose groups can move."""
    sources, bounds = home.tracked_sources, home.plan.graph.bounds
    refusal = track_refusal(home.query, bounds, sources)
    window = None if refusal else track_seconds(home.query, bounds, sources)
    return Ways(cast(BalanceMode, home.settings.balance), window, refusal, tuning)


def track_refusal(query: BoundQuery, bounds: Bounds, sources: Sequence[int]) -> str:
    """Why groups with rows of these sources cannot move by parallel track; empty if they can."""
    streams = [number for number, source in enumerate(query.sources) if not source.stream.is_table]
    if query.counts_rows:
        return "rows of a query with a ROWS window wait to be counted"
    for source in sources:
        if query.sources[source].stream.is_table:
            return f"a parallel track would never end: {query.sources[source].alias} is a table"
        if bounds.endless(source, streams):
            return f"a parallel track would never end: rows of {query.sources[source].alias} do not expire"
    return ""


def track_seconds(query: BoundQuery, bounds: Bounds, sources: Sequence[int]) -> float:
    """How many seconds of event time it takes until rows of these sources expire."""
    streams = [number for number, source in enumerate(query.sources) if not source.stream.is_table]
    lengths = [bounds.most[other][source] for source in sources for other in streams if other != source]
    return max((length for length in lengths if length < UNBOUND), default=0) / 1e6
