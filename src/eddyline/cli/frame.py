"""One picture of `--live`: rates, routes, packets and decisions, as much of them as fits on the terminal.

Rates, shares and selectivities are those of about the last second, from the difference of two reports. On a small
terminal, the routes and the newest decisions are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from eddyline.cli.progress import moment, on_disk
from eddyline.engine.groups.online import RunningEstimate
from eddyline.printable import printable
from eddyline.routing.report import Report, decision_text, number, percent, short_step
from eddyline.runtime.reporting.summary import Progress

_QUEUES = 4
"""The most meta-queues that are shown, the busiest first."""
_DECISIONS = 100
"""The most decisions that are kept, enough for the largest terminals."""


@dataclass(frozen=True)
class Look:
    """A run at one moment; `words` are further lines for the head, from the command that shows the run."""

    progress: Progress
    report: Report
    words: tuple[str, ...] = ()
    estimates: tuple[RunningEstimate, ...] = ()


@dataclass(frozen=True)
class _TitledTable:
    """A table below an empty line: titles, rows, and a last line about what was left out."""

    titles: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    more: str = ""
    newest: bool = False
    """Whether the last row is marked, and kept if there is no room for all rows."""

    @property
    def lines(self) -> int:
        return 2 + len(self.rows) + bool(self.more)

    def fitted(self, room: int) -> _TitledTable | None:
        """The part in at most `room` lines; None if that leaves no rows."""
        if self.lines <= room:
            return self
        if self.newest:
            return replace(self, rows=self.rows[-(room - 2) :]) if room > 2 else None
        kept = room - 3
        return replace(self, rows=self.rows[:kept], more=f"  … {self.lines - room + 1} more") if kept > 0 else None

    def drawn(self) -> Iterator[RenderableType]:
        """The part as text, or as a table if it has columns."""
        yield Text("")
        if len(self.titles) == 1:
            yield _text(self.titles[0], "bold")
            for row in self.rows:
                yield _text(row[0], "yellow" if self.newest and row is self.rows[-1] else "")
        else:
            table = Table(box=None, padding=0, header_style="bold")
            for i, title in enumerate(self.titles):
                table.add_column(_text(title), justify="right" if i else "left", no_wrap=True)
            for row in self.rows:
                table.add_row(*map(_text, row))
            yield table
        if self.more:
            yield _text(self.more, "dim")


@dataclass(frozen=True)
class Frame:
    """The picture of the run at `now`; rates are those since `then`. It fills at most the lines of the terminal."""

    now: Look
    then: Look

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        columns, lines = options.max_width, max(1, options.size.height - 1)
        yield from self._head()[:lines]
        for part in self._parts(columns, lines):
            yield from part.drawn()

    def _parts(self, columns: int, lines: int) -> list[_TitledTable]:
        """The parts that fit, in the order of the screen. Routes get room first; some room is reserved for
        decisions."""
        last = self.now.report if self.then is self.now else self.now.report.since(self.then.report)
        streams, routes, packets = self._streams(), _routes(last, columns), _packets(last)
        decisions, estimates = _decisions(self.now.report), _estimates(self.now.estimates)
        room = lines - len(self._head())
        kept = {}
        for part in (estimates, routes, streams, packets):
            if part is not None and (fitted := part.fitted(room - min(4, decisions.lines))):
                kept[id(part)] = fitted
                room -= fitted.lines
        ordered = [kept.get(id(part)) for part in (estimates, streams, routes, packets)]
        return [part for part in (*ordered, decisions.fitted(room)) if part is not None]

    @property
    def _before(self) -> Progress:
        return Progress() if self.then is self.now else self.then.progress

    def _head(self) -> list[Text]:
        progress, before, late_dead = self.now.progress, self._before, []
        for count, what in ((progress.rows_late, "late"), (progress.rows_dead, "dead")):
            late_dead += [f"{count:,} {what}"] if count else []
        first = [
            f"{progress.seconds:.1f} s",
            f"{progress.rows_in:,} rows in",
            f"{self._rate(progress.run_rows_in, before.run_rows_in)} rows/s",
            f"{progress.rows_out:,} out",
            f"{self._rate(progress.run_rows_out, before.run_rows_out)} out/s",
        ]
        second = [
            f"state {progress.state_rows:,} rows, {progress.memory_bytes / 1e6:,.1f} MB",
            f"watermark {moment(progress.watermark_us)}",
            f"input batch {self.now.report.input_batch:,}",
            *late_dead,
            *on_disk(progress),
        ]
        lines = [_text(" | ".join(first), "bold"), _text(" | ".join(second))]
        return [*lines, *(_text(word, "dim") for word in self.now.words)]

    def _rate(self, count: int, before: int) -> str:
        seconds = self.now.progress.seconds - self._before.seconds
        return f"{(count - before) / seconds:,.0f}" if seconds > 0 else "-"

    def _streams(self) -> _TitledTable:
        before = self._before.rows_by_stream
        rows = [
            (f"  {name}", f"{self._rate(count, before.get(name, 0)):>14}", f"{count:>16,}")
            for name, count in self.now.progress.rows_by_stream.items()
        ]
        return _TitledTable(("stream", "rows/s", "rows in"), rows)


def _routes(last: Report, columns: int) -> _TitledTable:
    aliases = [source.alias for source in last.query.sources]
    wide = max(map(cell_len, aliases))
    lines: list[str] = []
    for route in last.routes:
        alias = aliases[route.source]
        start = f"  {alias}{' ' * (wide - cell_len(alias))}  {percent(route.share):>6} "
        words = [f"-> {short_step(c.step, last.query)} {number(c.selectivity)}" for c, _ in route.steps]
        words += [] if route.complete or not words else ["-> ..."]
        lines += _wrapped(start, words, columns)
    title = "routes, with the share of tuples on them and the tuples out per tuple in"
    return _TitledTable((title,), [(line,) for line in lines])


def _wrapped(start: str, words: list[str], columns: int) -> list[str]:
    """Words after a start, in as many lines as they need; no word is divided."""
    lines, indent = [start], " " * cell_len(start)
    for word in words:
        if cell_len(lines[-1]) + 1 + cell_len(word) > columns and lines[-1] not in (start, indent):
            lines.append(indent)
        lines[-1] += f" {word}"
    return lines


def _packets(last: Report) -> _TitledTable | None:
    busy = sorted((p for p in last.packets if p.packets), key=lambda p: -p.tuples)
    if not busy:
        return None
    rows = [
        (f"  {last.name(p.signature)}", f"{number(p.mean):>10}", f"{p.threshold:>11,}", f"{p.occupancy:>9,}",
         f"{p.longest_wait * 1e3:>12,.1f} ms")
        for p in busy[:_QUEUES]
    ]  # fmt: skip
    titles = ("packets of", "tuples", "threshold", "waiting", "longest wait")
    return _TitledTable(
        titles, rows, f"  … and of {len(busy) - _QUEUES} more signatures" if len(busy) > _QUEUES else ""
    )


def _estimates(found: Sequence[RunningEstimate]) -> _TitledTable | None:
    """The estimates, the groups with the most rows first."""
    if not found:
        return None
    end = found[0].window_end
    title = "estimates" if end is None else f"estimates of the window up to {end:%Y-%m-%d %H:%M:%S}"
    cells = [estimate_cells(one) for one in found]
    rows = [(f"  {name}", f"{value:>14}", f"  {width:<14}", f"{seen:>12}") for name, value, width, seen in cells]
    return _TitledTable((title, "value", "95 %", "seen"), rows)


def estimate_cells(one: RunningEstimate) -> tuple[str, str, str, str]:
    """An estimate for display: its group and aggregate, its value, half of its interval, and the share that was
    seen."""
    group = ", ".join(str(value) for value in one.group.values())
    value = _figures(one.value, 4) if isinstance(one.value, int | float | Decimal) else str(one.value)
    width = f"({one.why})" if one.half_width is None else f"± {_figures(one.half_width, 3)}"
    seen = "" if one.share is None else f"{percent(one.share)} seen"
    return f"{group} {one.aggregate}".strip(), value, width, seen


def _figures(value: float | Decimal, figures: int) -> str:
    """A number with so many figures, and without an exponent if it is large.

    >>> _figures(1234567.8, 4), _figures(0.012345, 4)
    ('1,234,568', '0.01235')
    """
    return f"{value:,.0f}" if abs(value) >= 10**figures else f"{value:.{figures}g}"


def _decisions(report: Report) -> _TitledTable:
    """The decisions, the oldest first and the newest marked."""
    counted = ", ".join(f"{n:,} {kind}" for kind, n in report.counts.items()) or "none yet"
    lines = [(f"  {decision_text(decision)}",) for decision in report.decisions[-_DECISIONS:]]
    return _TitledTable((f"decisions: {counted}",), lines, newest=True)


def _text(text: str, style: str = "") -> Text:
    """One line, without characters that would move the cursor, cut where the terminal ends."""
    return Text(printable(text), style, no_wrap=True, overflow="ellipsis")
