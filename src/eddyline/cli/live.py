"""`--live`: what the eddy does, while it does it.

`frame` says what is shown: rates, routes, packets and decisions as lines for a terminal of some size; `LiveView` when:
after a batch, at most every `_EVERY` seconds, so a run pays for a few looks a second and nothing else. Rates, shares
and selectivities are those of about the last second, from the difference of two reports. Where standard error is no
terminal, `LiveLines` says a line a second and each decision once.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from types import TracebackType
from typing import Protocol

from eddyline.cli.progress import line, moment
from eddyline.cli.screen import Line, Screen, terminal_size, width
from eddyline.cli.streams import note
from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report, decision_text, number, percent, short_step
from eddyline.runtime.reporting.summary import Progress

_EVERY = 0.2
"""Seconds between two frames at least."""
_STRETCH = 1.0
"""Seconds that rates and shares are of, at least."""
_LINE_EVERY = 1.0
_SLOTS = re.compile(r"(\d+ slots.*?), \d+ groups: (.*); about .*")
_QUEUES = 4
"""Meta-queues that are shown, the busiest first."""


class Watched(Protocol):
    """A run that can be looked at."""

    def progress(self) -> Progress:
        """Where it is now."""

    def report(self) -> Report:
        """What was routed where so far."""

    def explain(self) -> str:
        """The plan, in text."""


@dataclass(frozen=True)
class Look:
    """A run at one moment; `words` are lines of whoever shows it, for the head."""

    progress: Progress
    report: Report
    words: tuple[str, ...] = ()


class LiveView:
    """Redraws a block on the terminal after batches. Used with `with`; leaves the last frame standing."""

    def __init__(
        self,
        runner: Watched,
        screen: Screen,
        stopping: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        words: Callable[[Progress], str] = lambda progress: "",
    ) -> None:
        """`words`: what else to say, such as what the data does now."""
        self._runner, self._screen, self._stopping, self._clock = runner, screen, stopping, clock
        self._words, self._plan = words, plan_line(runner.explain())
        self._next = 0.0
        self._stopped = False
        self._looks: deque[Look] = deque()

    def __enter__(self) -> LiveView:
        self._screen.open()
        return self

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now >= self._next:
            self._next = now + _EVERY
            self._draw(progress)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._draw(self._runner.progress())
        finally:
            self._screen.leave()
            self._screen.close()

    def _draw(self, progress: Progress) -> None:
        if self._stopping() and not self._stopped:
            self._stopped = True
            self._screen.leave()  # "stopping ..." was written below the block
        look = Look(progress, self._runner.report(), tuple(w for w in (self._plan, self._words(progress)) if w))
        self._looks.append(look)
        while len(self._looks) > 2 and self._looks[1].progress.seconds <= progress.seconds - _STRETCH:
            self._looks.popleft()
        columns, lines = terminal_size()
        self._screen.draw(frame(look, self._looks[0], columns - 1, lines - 1))


class LiveLines:
    """A line a second on standard error, and one for each decision. Used with `with`."""

    def __init__(
        self,
        runner: Watched,
        clock: Callable[[], float] = time.monotonic,
        words: Callable[[Progress], str] = lambda progress: "",
    ) -> None:
        """`words`: what else to say, when it changes."""
        self._runner, self._clock, self._words = runner, clock, words
        self._said = ""
        self._next = 0.0
        self._told = 0
        self._last: Decision | None = None

    def __enter__(self) -> LiveLines:
        return self

    def __call__(self, progress: Progress) -> None:
        now = self._clock()
        if now >= self._next:
            self._next = now + _LINE_EVERY
            self._tell_decisions()
            words = self._words(progress)
            if words != self._said:
                note(f"-- {words}")
                self._said = words
            note(line(progress))

    def __exit__(self, *error: object) -> None:
        self._tell_decisions()

    def _tell_decisions(self) -> None:
        report = self._runner.report()
        taken = sum(report.counts.values())
        new, self._told = taken - self._told, taken
        known = list(takewhile(lambda d: d is not self._last, reversed(report.decisions)))[::-1]
        self._last = report.decisions[-1] if report.decisions else None
        if len(known) < new:
            note(f"decisions: {new - len(known):,} more")
        for decision in known:
            note(f"{decision.kind}: {decision_text(decision)}")


def plan_line(explained: str) -> str:
    """The plan in a line: what is joined how, and how rows are spread over slots.

    >>> plan_line("multi-way join of 2 sources\\n\\na: stream\\n\\n2 slots, 256 groups: a, b by k; about 1 shipped")
    'plan: multi-way join of 2 sources; 2 slots: a, b by k'
    """
    lines = explained.split("\n\nmeasured:")[0].splitlines()
    slots = [f"{m[1]}: {m[2]}" for m in map(_SLOTS.match, lines) if m]
    return "; ".join([f"plan: {lines[0]}", *slots])


def live(runner: Watched, screen: Screen, stopping: Callable[[], bool]) -> LiveView | LiveLines:
    """What standard error can show."""
    return LiveView(runner, screen, stopping) if Screen.usable() else LiveLines(runner)


def frame(now: Look, then: Look, columns: int, lines: int) -> list[Line]:
    """What is shown, in at most so many lines; `then` is where the stretch began that rates are of. When there is
    little room, routes and the newest decisions come first."""
    last = now.report if then is now else now.report.since(then.report)
    head = _head(now, then)
    streams, routes, packets = _streams(now, then), _routes(last, columns), _packets(last)
    decisions = _decisions(now.report)
    room = lines - len(head)
    kept: dict[str, list[Line]] = {}
    for name, part, reserved in (("routes", routes, 4), ("streams", streams, 4), ("packets", packets, 4)):
        kept[name] = _fitting(part, room - min(reserved, len(decisions)))
        room -= len(kept[name])
    newest = [] if room < 3 else [decisions[0], decisions[1], *decisions[2:][-(room - 2) :]]
    return [*head, *kept["streams"], *kept["routes"], *kept["packets"], *newest][:lines]


def _fitting(part: list[Line], room: int) -> list[Line]:
    """A part, cut at the end if need be; a title alone is worth nothing."""
    if len(part) <= room:
        return part
    return [*part[: room - 1], (f"  … {len(part) - room + 1} more", "quiet")] if room > 3 else []


def _head(now: Look, then: Look) -> list[Line]:
    progress, before = now.progress, then.progress
    if then is now:
        before = Progress()
    odd = [f"{count:,} {what}" for count, what in ((progress.rows_late, "late"), (progress.rows_dead, "dead")) if count]
    first = [
        f"{progress.seconds:.1f} s",
        f"{progress.rows_in:,} rows in",
        f"{_rate(progress.rows_in - before.rows_in, progress, before)} rows/s",
        f"{progress.rows_out:,} out",
        f"{_rate(progress.rows_out - before.rows_out, progress, before)} out/s",
    ]
    second = [
        f"state {progress.state_rows:,} rows, {progress.memory_bytes / 1e6:,.1f} MB",
        f"watermark {moment(progress.watermark_us)}",
        f"input batch {now.report.input_batch:,}",
        *odd,
    ]
    return [(" | ".join(first), "title"), (" | ".join(second), ""), *((word, "quiet") for word in now.words)]


def _rate(count: int, progress: Progress, before: Progress) -> str:
    seconds = progress.seconds - before.seconds
    return f"{count / seconds:,.0f}" if seconds > 0 else "-"


def _streams(now: Look, then: Look) -> list[Line]:
    progress, before = now.progress, Progress() if then is now else then.progress
    names = list(progress.rows_by_stream)
    wide = max([len("stream"), *(width(name) for name in names)])
    rows = [
        f"  {name}{' ' * (wide - width(name))}  "
        f"{_rate(progress.rows_by_stream[name] - before.rows_by_stream.get(name, 0), progress, before):>12}"
        f"  {progress.rows_by_stream[name]:>14,}"
        for name in names
    ]
    title = f"{'stream'.ljust(wide + 2)}  {'rows/s':>12}  {'rows in':>14}"
    return [("", ""), (title, "title"), *((row, "") for row in rows)]


def _routes(last: Report, columns: int) -> list[Line]:
    aliases = [source.alias for source in last.query.sources]
    wide = max(width(alias) for alias in aliases)
    lines: list[Line] = [
        ("", ""),
        ("routes, with the share of tuples on them and the tuples out per tuple in", "title"),
    ]
    for route in last.routes:
        alias = aliases[route.source]
        start = f"  {alias}{' ' * (wide - width(alias))}  {percent(route.share):>6} "
        words = [f"-> {short_step(c.step, last.query)} {number(c.selectivity)}" for c, _ in route.steps]
        words += [] if route.complete or not words else ["-> ..."]
        lines += [(line, "") for line in _wrapped(start, words, columns)]
    return lines


def _wrapped(start: str, words: list[str], columns: int) -> list[str]:
    """Words behind a start, in as many lines as they need."""
    lines, indent = [start], " " * width(start)
    for word in words:
        if width(lines[-1]) + 1 + width(word) > columns and lines[-1] not in (start, indent):
            lines.append(indent)
        lines[-1] += f" {word}"
    return lines


def _packets(last: Report) -> list[Line]:
    busy = sorted((p for p in last.packets if p.packets), key=lambda p: -p.tuples)
    if not busy:
        return []
    wide = max([len("packets of"), *(width(last.name(p.signature)) for p in busy[:_QUEUES])])
    rows = [
        f"  {name}{' ' * (wide - width(name))}  {number(p.mean):>8}  {p.threshold:>9,}  {p.occupancy:>7,}"
        f"  {p.longest_wait * 1e3:>10,.1f} ms"
        for p in busy[:_QUEUES]
        for name in [last.name(p.signature)]
    ]
    title = f"{'packets of'.ljust(wide + 2)}  {'tuples':>8}  {'threshold':>9}  {'waiting':>7}  {'longest wait':>13}"
    more: list[Line] = [(f"  … and of {len(busy) - _QUEUES} more signatures", "quiet")] if len(busy) > _QUEUES else []
    return [("", ""), (title, "title"), *((row, "") for row in rows), *more]


def _decisions(report: Report) -> list[Line]:
    """Oldest first; the newest is marked."""
    if not report.decisions:
        return [("", ""), ("decisions: none yet", "title")]
    counted = ", ".join(f"{n:,} {kind}" for kind, n in report.counts.items())
    lines = [(f"  {decision_text(d)}", "") for d in report.decisions[-100:]]
    return [("", ""), (f"decisions: {counted}", "title"), *lines[:-1], (lines[-1][0], "new")]
