"""The index/hash hybrid (paper 001, section 4.5): whether indexes are asked while a scan fills the SteM of a table.

The scan brings wanted keys too: its rows times the *share* of them for which a tuple waits. The table's server works
for the indexes and for the scan. So while the scan brings more wanted keys than the indexes, asking the indexes may
slow the scan down by more keys than the indexes bring. This is tried: for a few parts of the scan no key is sent to an
index, and lookups that have not begun are taken back. Then we compare the wanted keys a second with the indexes and
without them:

    with them:      keys that they answer + rows of the scan while they are asked x share
    without them:   rows of the scan while they are not asked x share

The rates are those of the last few parts of the scan in each case; the share is the current one. From time to time the
other case is tried again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eddyline.engine.tuning import EngineTuning


@dataclass(frozen=True)
class HybridTurn:
    """Why keys are sent again, or no longer."""

    why: str
    measured: Mapping[str, float]


class Hybrid:
    """Measures the scan and the indexes of a table, and says whether keys are sent to the indexes."""

    def __init__(self, clock: Callable[[], float], tuning: EngineTuning) -> None:
        self._clock, self._tuning = clock, tuning
        self._rates: dict[bool, float] = {}
        """The rows that the scan brings in a second, by whether keys are sent."""
        self._keys_rate = self._share = self._gap = 0.0
        """The keys that indexes answer in a second; the wanted share of the rows; the seconds of a part of the scan."""
        self._same = 0
        """For how many windows nothing was changed."""
        self.begin()

    def begin(self) -> None:
        """The scan begins. Keys are sent."""
        self.sends, self._begun = True, False

    def _count(self) -> None:
        """Count from now on."""
        self._begun, self._since = True, self._clock()
        self._last = self._since
        self._parts = self._rows = self._keys = self._sampled = self._wanted = 0

    def scanned(self, rows: int, sampled: int, wanted: int) -> None:
        """A part of the scan came; of `sampled` of its rows so many are `wanted`."""
        if not self._begun:  # how soon the first part comes is not how fast parts come
            self._count()
            return
        self._last = self._clock()
        self._parts += 1
        self._rows += rows
        self._sampled += sampled
        self._wanted += wanted

    def answered(self, keys: int) -> None:
        """Indexes have answered so many keys."""
        if self._begun:
            self._keys += keys

    def look(self, owes: bool) -> HybridTurn | None:
        """Decide anew; returns the change, if there is one. `owes` says whether an index owes answers."""
        if not self._begun:
            return None
        now, tuning = self._clock(), self._tuning
        if self._parts < tuning.hybrid_parts or now <= self._since:
            late = now - self._last
            stalls = not self.sends and late > tuning.overdue_least + tuning.overdue * self._gap
            return self._turn(f"the scan has brought nothing for {late:.3g} s") if stalls else None
        self._measure(now - self._since)
        scan, alone = (self._share * self._rates.get(sends, 0.0) for sends in (True, False))
        asked, alone = self._keys_rate + scan, alone * tuning.scan_gain
        self._same += 1
        if self._same > tuning.hybrid_windows:  # the other case may have changed since it was measured
            self._same = 0
            self._rates.pop(not self.sends, None)
        is_known = (not self.sends) in self._rates
        if self.sends:
            brings_more = scan * tuning.scan_gain > self._keys_rate
            turns = owes and brings_more and (not is_known or alone > asked * tuning.hybrid_margin)
        else:
            turns = not is_known or asked > alone
        return self._turn(self._told(scan, alone)) if turns else None

    def _measure(self, seconds: float) -> None:
        self._rates[self.sends] = self._rows / seconds
        self._keys_rate = self._keys / seconds if self.sends else self._keys_rate
        self._share, self._gap = self._wanted / max(1, self._sampled), seconds / self._parts
        self._count()

    def _told(self, scan: float, alone: float) -> str:
        wanted = f"wanted keys a second: {self._keys_rate:.3g} by the indexes and {scan:.3g} by the scan"
        return f"{wanted}, {alone:.3g} by the scan alone" if alone else wanted

    def _turn(self, why: str) -> HybridTurn:
        self.sends, self._same = not self.sends, 0
        self._count()
        return HybridTurn(why, {"share": self._share, "keys a second": self._keys_rate})
