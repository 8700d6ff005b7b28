"""The account of a run with a checkpoint: counts, state and the work of eddies, summed over its committed batches.

Rows are counted twice: over all runs of the job, as in the commit, and over this run. Everything else is of this run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock

from eddyline.counts import Counts
from eddyline.engine.estimate import Estimate, put_together
from eddyline.engine.groups.online import RunningEstimate
from eddyline.engine.standing import DiskSize, SlotStanding, Standing, StateSize
from eddyline.plan.explain import explain
from eddyline.plan.tree import parse_tree
from eddyline.protocol.commit import Commit
from eddyline.protocol.home import Home
from eddyline.protocol.in_process import InProcess
from eddyline.protocol.record import COMBINED, Record
from eddyline.routing.decisions import Decision
from eddyline.routing.gathered import Gathered, TurnReport
from eddyline.routing.report import Report
from eddyline.spill.group_table import GroupTable


class Account:
    """Sums up one run; its reporter (runtime/reporting/reporter.py) reads it."""

    def __init__(self, home: Home, here: InProcess | None = None) -> None:
        """`here` knows the work of slots in this process; the records of other slots have it."""
        self._home, self._here, self._lock = home, here, Lock()
        self._gathered = Gathered(home.plan, home.slots)
        self._estimates: dict[int, Estimate] = {}
        """The newest estimate of each slot."""
        self._standing = Standing()
        self._cpu: dict[int, float] = {}
        """CPU seconds of each slot in this run."""

    def begin(self, commit: Commit) -> None:
        """Start from this commit."""
        self._stand(commit, Counts(), (), None)

    def add(
        self, commit: Commit, counts: Counts, records: Sequence[Record], sizes: Sequence[StateSize] | None = None
    ) -> None:
        """Add a committed batch with these counts and records. `sizes` are those of the slots after the commit, if they
        are known."""
        self._gather([(record.slot, record.report) for record in records])
        self._estimates |= {record.slot: record.estimate for record in records if record.estimate is not None}
        self._stand(commit, counts, records, sizes)

    def decide(self, decisions: Sequence[Decision]) -> None:
        """Add decisions of the driver."""
        if decisions:
            self._look()
            self._gathered.decide(decisions)

    def _look(self) -> None:
        """Gather the work of slots in this process."""
        if self._here is not None:
            self._gather(self._here.work())

    def _gather(self, work: Sequence[tuple[int, TurnReport | None]]) -> None:
        with self._lock:
            for slot, report in work:
                if report is not None:
                    self._gathered.add(slot, report)

    def end(self) -> None:
        """The log is removed: nothing is on disk any more."""
        self._standing = replace(self._standing, disk=DiskSize())

    def _stand(
        self, commit: Commit, counts: Counts, records: Sequence[Record], sizes: Sequence[StateSize] | None
    ) -> None:
        before, left = self._standing, commit.ledger.generations.left
        of_slots = sorted((r for r in records if r.slot != COMBINED), key=lambda r: r.slot)
        peaks = [record.held for record in of_slots]
        peak = sum(peaks, StateSize())
        disk = DiskSize(len(left), sum(file.bytes for file in commit.log))
        groups = before.groups  # all rows expire when the streams end: the accounts before that tell more
        has_ended = self._ended(commit)
        if not has_ended:
            known = [r for r in records if r.spillable.accounts]
            places = None if commit.slot_map is None else commit.slot_map.places
            groups = GroupTable(
                tuple(r.spillable for r in known), frozenset(left), tuple(r.slot for r in known), places
            )
        self._standing = Standing(
            commit.counts,
            before.run + counts,
            sum(sizes or peaks, StateSize()),
            before.peak.most(peak),
            commit.watermarks.used,
            commit.watermarks,
            commit.waiting,
            disk,
            before.peak_disk.most(disk),
            0 if has_ended else _behind(commit),
            groups,
            before.rebuilt + sum(record.rebuilt for record in records),
            commit.finished,
            self._home.preferences.text,
            slots=tuple(self._slots(of_slots, sizes or peaks)),
        )

    def _slots(self, records: Sequence[Record], sizes: Sequence[StateSize]) -> Iterator[SlotStanding]:
        for record, size in zip(records, sizes, strict=True):
            self._cpu[record.slot] = self._cpu.get(record.slot, 0.0) + record.cpu
            yield SlotStanding(record.slot, size.rows, size.bytes, self._cpu[record.slot])

    def _ended(self, commit: Commit) -> bool:
        """Whether all streams have ended."""
        return commit.finished or self._home.streams.keys() <= set(commit.watermarks.ended)

    @property
    def standing(self) -> Standing:
        """The counts and the state of the job after its newest commit."""
        return self._standing

    @property
    def decisions(self) -> dict[str, int]:
        """Decisions taken so far in this run, by kind."""
        self._look()
        return dict(self._gathered.counts)

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """No estimates: only slots in the driver's process have them."""
        return ()

    def report(self, seconds: float) -> Report:
        """The work of the eddies of all slots so far in this run, `seconds` after its start."""
        self._look()
        return self._gathered.report(seconds)

    def explain(self) -> str:
        """The plan that most slots run, the measurements on it so far, and the estimate for each plan that a slot
        runs."""
        home, report = self._home, self.report(0.0)
        tree = parse_tree(report.tree, [source.alias for source in home.query.sources])
        known = self._estimates | dict(self._here.costs() if self._here is not None else ())
        estimates = [e.text(home.plan) for e in put_together([one for one in known.values() if one is not None])]
        plan = explain(home.query, home.split.partitioning, tree, home.settings, home.preferences.text)
        parts = plan, report.text(), *estimates
        return "\n\n".join(part for part in parts if part)


def _behind(commit: Commit) -> int:
    """How far the watermark is ahead of where it was when all groups were clean last, in microseconds."""
    held, used = commit.ledger.held, commit.watermarks.used
    return 0 if held is None or held.used is None or used is None else used - held.used
