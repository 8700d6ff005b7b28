"""What happened in a simulated job whose groups leave memory or move between slots, and whether it happened in enough
cases of a run.

A fuzzer that moves no groups finds no fault in moving them. So every case notes what it went through, and a run of many
cases fails if a share is lower than LEAST.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from eddyline.balance.slot_map import NOBODY
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.spill.generations import Generations
from eddyline.testing.case import Case

MISSED = "missing results made"

LEAST = {
    "groups on disk": 0.6,
    "several generations": 0.33,
    "cold groups": 0.44,
    "warm again": 0.17,
    "swept while running": 0.33,
    "crashed with groups on disk": 0.25,
    "restarted with other slots with groups on disk": 0.1,
    "plan changed with groups on disk": 0.15,
    MISSED: 0.45,
    f"{MISSED}, aggregate": 0.17,
    f"{MISSED}, slide": 0.11,
    f"{MISSED}, window RANGE": 0.29,
    f"{MISSED}, window ROWS": 0.09,
    f"{MISSED}, window UNBOUNDED": 0.14,
    f"{MISSED}, window none": 0.12,
}
"""The least share of cases in which something must happen: about two thirds of the share that is usual."""

MOVED, CAME, WENT, SHARED = "groups moved", "slots came", "slots went", "keys shared"
TRACK = "parallel track"
LEAST_MOVED = {
    CAME: 0.14,
    WENT: 0.14,
    MOVED: 0.3,
    f"{MOVED}, groups on disk": 0.1,
    f"{MOVED}, crashed": 0.12,
    f"{MOVED}, window ROWS": 0.06,
    TRACK: 0.14,
    f"{TRACK}, several at once": 0.03,
    f"{TRACK}, groups on disk": 0.06,
    f"{TRACK}, ended": 0.06,
    f"{TRACK}, given up for the sender": 0.03,
    f"{TRACK}, crashed": 0.04,
}
"""The same, where groups move between slots."""

ENOUGH = 500
"""Runs with fewer cases are not judged."""


class SpillCoverage:
    """Notes what happens in one job."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._generations = Generations()
        self._moved = self._tracks = False

    def crashed(self, slots: int, next_slots: int) -> None:
        """The job died, and is started again."""
        self._note("crashed", True)
        self.seen |= {f"{MOVED}, crashed"} if self._moved else set()
        self.seen |= {f"{TRACK}, crashed"} if self._tracks else set()
        self._note("restarted with other slots", slots != next_slots)

    def committed(self, decision: BatchDecision, before: Commit, after: Commit) -> None:
        """A batch was committed."""
        cold, generations = set(self._generations.cold), decision.ledger.generations
        self._generations = generations
        happened = {
            "groups on disk": generations.left,
            "several generations": any(len(epochs) > 1 for epochs in generations.left.values()),
            "cold groups": generations.cold,
            "warm again": cold - set(generations.cold),
            "swept while running": decision.moves.sweep and decision.kind == "rows",
            MISSED: after.counts.spill.results,
        }
        self.seen |= {what for what, did in happened.items() if did}
        self._moved = decision.slot_map != decision.map_before
        self._note_tracks(decision)
        if self._moved:
            self.seen |= {MOVED, f"{MOVED}, groups on disk"} if generations.left else {MOVED}
        if decision.slot_map is not None and decision.slot_map.hot:
            self.seen |= {SHARED, f"{SHARED}, groups on disk"} if generations.left else {SHARED}
        if before.slot_map is not None and before.next_map is not None and before.next_map == decision.slot_map:
            slots, next_slots = before.slot_map.slots, decision.slots
            self.seen |= {CAME} if slots < next_slots else {WENT} if slots > next_slots else set()
        changed = any(before.plans[slot].plan != now.plan for slot, now in after.plans.items() if slot in before.plans)
        self._note("plan changed", changed)

    def _note_tracks(self, decision: BatchDecision) -> None:
        now, before = decision.slot_map, decision.map_before
        self._tracks = now is not None and bool(now.tracks)
        if now is None or before is None:
            return
        ended = (before.senders != NOBODY) & (now.senders == NOBODY)
        happened = {
            TRACK: now.tracks,
            f"{TRACK}, several at once": len({track.epoch for track in now.tracks}) > 1,
            f"{TRACK}, groups on disk": now.tracks and decision.ledger.generations.left,
            f"{TRACK}, ended": (ended & (now.places == before.places)).any(),
            f"{TRACK}, given up for the sender": (ended & (now.places == before.senders)).any(),
        }
        self.seen |= {what for what, did in happened.items() if did}

    def _note(self, what: str, happened: bool) -> None:
        if happened:
            self.seen.add(f"{what} with groups on disk" if self._generations.left else what)


def features_of(case: Case) -> Iterator[str]:
    """The parts of a query that matter to groups on disk."""
    for feature in case.features:
        if feature.startswith("window ") or feature in ("aggregate", "slide", "static table", "time bound", "grouped"):
            yield feature


def too_low(seen: Counter[str], cases: int, expected: Mapping[str, float]) -> list[str]:
    """What happened in too few cases, as text."""
    if cases < ENOUGH:
        return []
    return [
        f"{what}: {seen[what]} of {cases} cases, expected at least {round(least * cases)}"
        for what, least in expected.items()
        if seen[what] < least * cases
    ]
