"""`eddyline demo`: generated streams whose data drifts, joined, checked by user functions and counted, with a view of
how the engine follows; then the same rows once more on a fixed route, to see what following was worth.

The two runs are of the same rows in the same process, one after the other, both after a short run that compiles
everything and loads what is loaded once, so neither pays for that. What they print is compared: routes change what a
query costs, never what it gives.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO, cast

from eddyline.cli.main import BEGAN
from eddyline.cli.screen import Screen
from eddyline.cli.stopping import interrupts
from eddyline.cli.streams import note
from eddyline.errors import InternalError
from eddyline.settings import Settings

if TYPE_CHECKING:
    from eddyline.routing.decisions import Decision
    from eddyline.runtime.summary import Progress, Summary

_SCRIPT = """\
CREATE STREAM payments (ts TIMESTAMP, order_id BIGINT, amount DOUBLE, device DOUBLE) USING generate OPTIONS (
    duration '{seconds} s', start '2026-01-01 00:00:01', rate 20000,
    order_id.distribution 'sequence', order_id.domain '0..999999999', amount.domain '0..100', device.domain '90..190',
    drift '{third} s: amount.domain = 90..190, device.domain = 0..100; {two_thirds} s: device.domain = 90..190'
) TIMESTAMP BY ts;
CREATE STREAM orders (ts TIMESTAMP, id BIGINT, customer BIGINT) USING generate OPTIONS (
    duration '{seconds} s', rate 20000, id.distribution 'sequence', id.domain '0..999999999', customer.domain '0..9999'
) TIMESTAMP BY ts;
CREATE STREAM logins (ts TIMESTAMP, customer BIGINT) USING generate OPTIONS (
    duration '{seconds} s', rate 1000, customer.domain '0..9999', drift '{two_thirds} s: customer.selectivity = 0.02'
) TIMESTAMP BY ts;

SELECT window_end() AS until, COUNT(*) AS alarms, round(AVG(p.amount), 2) AS mean_amount
FROM payments [RANGE 10 SECONDS SLIDE 10 SECONDS] AS p, orders [RANGE 10 SECONDS SLIDE 10 SECONDS] AS o,
     logins [RANGE 10 SECONDS SLIDE 10 SECONDS] AS l
WHERE p.order_id = o.id AND o.customer = l.customer AND odd_amount(p.amount) AND odd_device(p.device)
"""
_SHORT = 3
"""Seconds of event time of the run that only compiles."""
_MODULE = "eddyline.cli.demo_functions"
_PHASES = (
    "1 payment in 20 has an odd amount, nearly all have an odd device",
    "the other way round: nearly all have an odd amount, 1 in 20 an odd device",
    "nearly all are odd in both, but few customers have logged in",
)
_START = 1_767_225_600_000_000
"""Where generated time begins: 2026-01-01, in microseconds since 1970."""
_FIRST = 6
"""Decisions of a phase that are told at the end."""
_INTRODUCTION = """\
Orders, their payments (a second later) and logins, {seconds} s of event time, joined within 10 s. The script:

{text}
odd_amount and odd_device are Python functions (in {module}) whose cost nobody told the engine.
The data drifts, so that no order of checks and joins is the best one all the time:
{drift}
"""
_WHAT_NEXT = """
Both runs read the same rows and gave the same results, one after the other in this process, after a short one that
compiled everything; it is one run each, so small differences are noise. router=fixed follows the order of the script:
checks as written, as soon as they can be made, then the joins in the order of FROM.

Next: put the script above in demo.sql, change it, and watch it with
  ./run eddyline run demo.sql --udf {module} --live
docs/guide.md goes on."""


@dataclass(frozen=True)
class _Mark:
    """After a batch: rows built, seconds of running, seconds of event time, the route of payments."""

    rows: int
    seconds: float
    event: float
    route: str


class _Kept(io.TextIOBase):
    """Passes text on and remembers it."""

    def __init__(self, to: TextIO) -> None:
        self._to = to
        self.words: list[str] = []

    @property
    def out(self) -> TextIO:
        """Itself, as what it is used for."""
        return cast(TextIO, self)

    def write(self, text: str) -> int:
        self.words += text.split()
        return self._to.write(text)

    def flush(self) -> None:
        self._to.flush()


@dataclass(frozen=True)
class _Ran:
    summary: Summary
    marks: list[_Mark]
    decisions: tuple[Decision, ...]

    def until(self, event: float) -> float:
        """Seconds of running when event time had come so far, to the batch."""
        return next((m.seconds for m in self.marks if m.event >= event), self.summary.seconds)

    def route(self, event: float) -> str:
        """The route of payments just before an event time."""
        return next((m.route for m in reversed(self.marks) if m.event <= event), "")

    def when(self, decision: Decision) -> float:
        """The event time of a decision, to the batch."""
        return next((m.event for m in self.marks if m.rows >= decision.at), self.marks[-1].event)


def command(options: argparse.Namespace) -> int:
    """Runs the generated job twice and tells what the difference was."""
    seconds, text = options.seconds, _script(options.seconds)
    print(_INTRODUCTION.format(seconds=seconds, text=text, module=_MODULE, drift=_drift(seconds)), flush=True)
    import_module(_MODULE)
    note("a short run first, which compiles what is not compiled yet ...")
    _run(_script(_SHORT), Settings(), io.StringIO())
    screen = Screen()
    printed, printed_again = _Kept(screen.above(sys.stdout)), _Kept(io.StringIO())
    with interrupts() as stop:
        adaptive = _run(text, Settings(), printed.out, screen, stop.is_set)
        if not stop.is_set():
            note("\nthe same rows once more with router=fixed ...")
            fixed = _run(text, replace(Settings(), router="fixed"), printed_again.out, stop=stop.is_set)
    if stop.is_set():
        note("stopped")
    elif printed.words != printed_again.words:
        raise InternalError("the two runs of the demo gave different results")
    else:
        print(_told(seconds, adaptive, fixed))
    if options.json:
        print(json.dumps(adaptive.summary.as_dict()))
    return 0


def _script(seconds: int) -> str:
    return _SCRIPT.format(seconds=seconds, third=seconds // 3, two_thirds=2 * seconds // 3)


def _run(
    text: str,
    settings: Settings,
    out: TextIO,
    screen: Screen | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> _Ran:
    """With the live view if there is a screen for it, else with the progress line if standard error is a terminal."""
    from eddyline.cli.live import LiveView
    from eddyline.cli.progress import ProgressLine
    from eddyline.routing.report import short_step
    from eddyline.runtime.job import prepare
    from eddyline.runtime.runner import LocalRunner

    runner = LocalRunner(prepare(text, seed=settings.seed, out=out), settings, began=BEGAN)
    view = ProgressLine(always=False) if screen is None or not Screen.usable() else LiveView(runner, screen, stop)
    marks: list[_Mark] = []

    def watch(progress: Progress) -> None:
        event = marks[-1].event if marks else 0.0  # where no watermark is known: before rows came, and at the end
        if progress.watermark is not None:
            event = (progress.watermark - _START) / 1e6
        report = runner.report()
        words = [short_step(c.step, report.query) for c, _ in report.routes[0].steps]
        marks.append(_Mark(sum(report.rows), progress.seconds, event, " -> ".join(["p", *words])))
        view(progress)

    with view:
        summary = runner.run(stop, watch)
    return _Ran(summary, marks, runner.report().decisions)


def _drift(seconds: int) -> str:
    ends = _bounds(seconds)
    return "\n".join(
        f"  {a:>3} to {b:>3} s  {what}"
        for a, b, what in ((*pair, what) for pair, what in zip(pairwise(ends), _PHASES, strict=True))
    )


def _bounds(seconds: int) -> list[int]:
    return [0, seconds // 3, 2 * seconds // 3, seconds]


def _told(seconds: int, adaptive: _Ran, fixed: _Ran) -> str:
    return "\n".join(
        [*_decided(seconds, adaptive), "", *_compared(seconds, adaptive, fixed), _WHAT_NEXT.format(module=_MODULE)]
    )


def _decided(seconds: int, ran: _Ran) -> list[str]:
    """For each phase the first decisions, and the route of payments when it ended."""
    lines = ["", f"The data drifted twice, and the router decided anew {len(ran.decisions)} times:"]
    for begin, end in pairwise(_bounds(seconds)):
        taken = [d for d in ran.decisions if begin < ran.when(d) and (ran.when(d) <= end or end == seconds)]
        lines += ["", f"  {begin} to {end} s"]
        lines += [f"  {ran.when(d):>5.1f} s  {d.what}" for d in taken[:_FIRST]]
        lines += [f"           ... and {len(taken) - _FIRST} more"] * (len(taken) > _FIRST)
        lines.append(f"           so payments went {ran.route(end)}")
    return lines


def _compared(seconds: int, adaptive: _Ran, fixed: _Ran) -> list[str]:
    ends = _bounds(seconds)
    lines = [f"{'event time':<14}  {'router=auto':>12}  {'router=fixed':>12}"]
    for begin, end in pairwise(ends):
        took = [ran.until(end) - ran.until(begin) if begin else ran.until(end) for ran in (adaptive, fixed)]
        lines.append(f"{f'{begin} to {end} s':<14}  {took[0]:>10.2f} s  {took[1]:>10.2f} s")
    a, f = adaptive.summary, fixed.summary
    lines.append(f"{'all':<14}  {a.seconds:>10.2f} s  {f.seconds:>10.2f} s   {f.seconds / a.seconds:.2f} times")
    lines.append(f"{'rows a second':<14}  {a.rows_in / a.seconds:>12,.0f}  {f.rows_in / f.seconds:>12,.0f}")
    return lines
