"""`--live`: shows routes, rates and decisions while a job runs.

`LiveView` draws a frame (`cli/frame.py`) after a batch, at most every `_EVERY` seconds, so it costs a run only a few
reports a second. If standard error is not a terminal, `LiveLines` writes a line a second and each decision once.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from eddyline.cli.display import Display
from eddyline.cli.frame import Frame, Look, estimate_cells
from eddyline.cli.progress import line
from eddyline.cli.streams import note
from eddyline.engine.groups.online import RunningEstimate
from eddyline.routing.report import Report, decision_text
from eddyline.runtime.recording.new_decisions import NewDecisions
from eddyline.runtime.reporting.summary import Progress

_EVERY = 0.2
"""The least seconds between two frames."""
_STRETCH = 1.0
"""The least seconds over which rates and shares are computed."""
_LINE_EVERY = 1.0
_GROUPS = 20
"""The most groups whose estimates are shown on a terminal."""
_FEW_GROUPS = 3
"""The same for lines."""
_SLOTS = re.compile(r"(\d+ slots.*?), \d+ groups: (.*); about .*")


class Watched(Protocol):
    """The part of a runner that the live view needs."""

    def progress(self) -> Progress:
        """The progress of the run."""

    def report(self) -> Report:
        """The report of the routes so far."""

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of aggregates, at most of so many groups."""

    def explain(self) -> str:
        """The plan as text."""


class LiveView:
    """Redraws a block on the terminal after batches. Used with `with`; leaves the last frame standing."""

    def __init__(
        self,
        runner: Watched,
        display: Display,
        clock: Callable[[], float] = time.monotonic,
        words: Callable[[Progress], str] = lambda progress: "",
    ) -> None:
        """`words` gives a further line to show, such as the demo's line about the current data."""
        self._runner, self._display, self._clock = runner, display, clock
        self._words, self._plan = words, plan_line(runner.explain())
        self._next = 0.0
        self._looks: deque[Look] = deque()

    def __enter__(self) -> LiveView:
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
            self._display.close()

    def _draw(self, progress: Progress) -> None:
        words = tuple(w for w in (self._plan, self._words(progress)) if w)
        look = Look(progress, self._runner.report(), words, self._runner.estimates(_GROUPS))
        self._looks.append(look)
        while len(self._looks) > 2 and self._looks[1].progress.seconds <= progress.seconds - _STRETCH:
            self._looks.popleft()
        self._display.show(Frame(look, self._looks[0]))


class LiveLines:
    """A line a second on standard error, and one for each decision. Used with `with`."""

    def __init__(
        self,
        runner: Watched,
        clock: Callable[[], float] = time.monotonic,
        words: Callable[[Progress], str] = lambda progress: "",
    ) -> None:
        """`words` gives a further line, which is written when it changes."""
        self._runner, self._clock, self._words = runner, clock, words
        self._said = ""
        self._next = 0.0
        self._new = NewDecisions()

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
            for estimate in self._runner.estimates(_FEW_GROUPS):
                note(f"estimate: {' '.join(estimate_cells(estimate))}")

    def __exit__(self, *error: object) -> None:
        self._tell_decisions()

    def _tell_decisions(self) -> None:
        known, missed = self._new.look(self._runner.report())
        if missed:
            note(f"decisions: {missed:,} more")
        for decision in known:
            note(f"{decision.kind}: {decision_text(decision)}")


def plan_line(explained: str) -> str:
    """The plan in one line: its joins, and how rows are spread over slots.

    >>> plan_line("multi-way join of 2 sources\\n\\na: stream\\n\\n2 slots, 256 groups: a, b by k; about 1 shipped")
    'plan: multi-way join of 2 sources; 2 slots: a, b by k'
    """
    lines = explained.split("\n\nmeasured:")[0].splitlines()
    slots = [f"{m[1]}: {m[2]}" for m in map(_SLOTS.match, lines) if m]
    return "; ".join([f"plan: {lines[0]}", *slots])


def live(
    runner: Watched, display: Display, words: Callable[[Progress], str] = lambda progress: ""
) -> LiveView | LiveLines:
    """LiveView if standard error is a terminal, else LiveLines; both get `words`."""
    return LiveView(runner, display, words=words) if Display.usable() else LiveLines(runner, words=words)
