"""Samples: the counters of a run at one moment, and the work of the eddies since the sample before it.

Reports are totals, so a sample is a difference of two reports. An eddy starts at zero when its plan changes, and a slot
that was rebuilt does too: a total that is smaller than before counts whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from eddyline.engine.standing import SlotStanding, Standing
from eddyline.plan.explain import step_text
from eddyline.plan.plan import Signature
from eddyline.plan.steps import Probe
from eddyline.routing.report import Report, StepCount, share_of
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.reporting.summary import Progress

GROUPS_EVERY = 5.0
"""The least seconds between two samples with the accounts of groups."""

Steps = Mapping[Signature, tuple[StepCount, ...]]


class Sampler:
    """Makes the samples of one run."""

    def __init__(self, lateness: Mapping[str, int], memory_limit: int | None) -> None:
        """`lateness` is that of each stream."""
        self._lateness, self._memory_limit = lateness, memory_limit
        self._progress = Progress()
        self._reports: dict[str, Report] = {}
        """The newest report by the shape of the plan."""
        self._rows: tuple[int, ...] = ()
        self._slots: dict[int, SlotStanding] = {}
        self._groups_at = -math.inf

    def sample(self, t: float, progress: Progress, report: Report, standing: Standing) -> Event:
        """The sample at `t`."""
        before, self._progress = self._progress, progress
        batches, seconds = progress.batches - before.batches, progress.seconds - before.seconds
        new = since(report, self._reports.get(report.tree))
        self._reports[report.tree] = report
        rows = [max(0, a - b) for a, b in zip(report.rows, self._rows or (0,) * len(report.rows), strict=True)]
        self._rows = report.rows
        event = {
            "type": "sample",
            "t": t,
            "rows_in": progress.rows_in,
            "rows_out": progress.rows_out,
            "rows_late": progress.rows_late,
            "rows_dead": progress.rows_dead,
            "errors": standing.job.expression_errors,
            "state_rows": progress.state_rows,
            "memory_bytes": progress.memory_bytes,
            "memory_limit": self._memory_limit,
            "batches": progress.batches,
            "batch_seconds": round(seconds / batches, 6) if batches > 0 else None,
            "watermark_us": _time(progress.watermark_us),
            "backlog_rows": progress.backlog_rows,
            "streams": self._streams(standing),
            "routes": self._routes(report, new, rows),
            "steps": list(_steps(report, new)),
            "packets": [
                {"at": report.name(p.signature), "mean": p.mean, "threshold": p.threshold, "occupancy": p.occupancy,
                 "packets": p.packets}
                for p in report.packets if p.packets
            ],
            "tree": report.tree,
            "slots": self._of_slots(standing, seconds),
            "disk": {"groups": progress.groups_on_disk, "log_bytes": progress.log_bytes},
            "spill": {"left": progress.groups_left, "rows": progress.spilled_rows, "sweeps": progress.sweeps,
                      "results": progress.sweep_results},
        }  # fmt: skip
        if standing.groups.slots and t >= self._groups_at + GROUPS_EVERY:
            self._groups_at = t
            event["groups"] = standing.groups.columns()
        return event

    def _streams(self, standing: Standing) -> dict[str, dict[str, Any]]:
        found = {}
        for name, lateness in self._lateness.items():
            counts, newest = standing.run.streams.get(name), standing.reached.newest.get(name)
            found[name] = {
                "rows": counts.rows if counts else 0,
                "late": counts.late if counts else 0,
                "dead": counts.dead if counts else 0,
                "newest_us": newest,
                "watermark_us": None if newest is None else newest - lateness,
                "idle": name in standing.reached.idle,
                "ended": name in standing.reached.ended,
            }
        return found

    @staticmethod
    def _routes(report: Report, new: Steps, rows: list[int]) -> list[dict[str, Any]]:
        """The route of each source; the share is of the tuples since the last sample."""
        found = []
        for route in report.routes:
            shares, span, spans = list[float](), 1 << route.source, [[route.source]]
            signature = span, 0
            for count, _ in route.steps:
                here = new.get(signature, ())
                share = next((share_of(c, here) for c in here if c.step == count.step), None)
                shares += [] if share is None else [share]
                signature = count.after
                spans.append(_sources(signature[0]))
            found.append({
                "source": report.query.sources[route.source].alias,
                "steps": [step_text(count.step, report.query) for count, _ in route.steps],
                "spans": spans,
                "share": math.prod(shares) if shares else None,
                "rows": rows[route.source] if route.source < len(rows) else 0,
            })  # fmt: skip
        return found

    def _of_slots(self, standing: Standing, seconds: float) -> list[dict[str, Any]]:
        before, self._slots = self._slots, {slot.slot: slot for slot in standing.slots}
        return [
            {"slot": slot.slot, "rows": slot.rows, "bytes": slot.bytes,
             "busy": _busy(slot, before.get(slot.slot), seconds)}
            for slot in standing.slots
        ]  # fmt: skip


def since(report: Report, before: Report | None) -> dict[Signature, tuple[StepCount, ...]]:
    """The work of each step since an earlier report with the same plan."""
    known = {} if before is None else before.steps
    return {
        signature: tuple(_less(now, then) for now, then in zip(counts, known.get(signature, ()), strict=True))
        if len(known.get(signature, ())) == len(counts)
        else counts
        for signature, counts in report.steps.items()
    }


def _less(now: StepCount, then: StepCount) -> StepCount:
    return now.less(then) if now.tuples >= then.tuples and now.seconds >= then.seconds else now


def _steps(report: Report, new: Steps) -> list[dict[str, Any]]:
    """The steps that tuples took since the last sample, and those that they take now."""
    return [
        {
            "at": report.name(signature),
            "span": _sources(signature[0]),
            "to": _sources(count.after[0]) if isinstance(count.step, Probe) else None,
            "step": step_text(count.step, report.query),
            "chosen": count.chosen,
            "tuples": count.tuples,
            "produced": count.produced,
            "us": round(count.seconds * 1e6, 1),
        }
        for signature, counts in sorted(new.items(), key=lambda item: (item[0][0].bit_count(), item[0]))
        for count in counts
        if count.tuples or count.chosen
    ]


def _sources(span: int) -> list[int]:
    return [number for number in range(span.bit_length()) if span >> number & 1]


def _busy(slot: SlotStanding, before: SlotStanding | None, seconds: float) -> float | None:
    """The share of the time in which a slot worked; None: not known."""
    if seconds <= 0:
        return None
    return round(min(1.0, max(0.0, slot.cpu - (before.cpu if before else 0.0)) / seconds), 4)


def _time(micros: int | None) -> int | None:
    """An event time; None once the streams have ended, when it is infinite."""
    return micros if micros is not None and abs(micros) < 1 << 61 else None
