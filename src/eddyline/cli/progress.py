"""The progress line on standard error, and the closing sentence."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from eddyline.cli.display import Display
from eddyline.cli.streams import note
from eddyline.runtime.reporting.advice import short
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.setting_kinds import size_text

_EVERY = 0.2
_FIRST = 1.0
"""The seconds after which the line appears without being asked for: shorter runs need none, and do not import rich."""
_BAR = 20
"""The length of the bar of the clean-up at the end, in characters."""


class ProgressLine:
    """A line at the bottom of a terminal that is redrawn in place; without a terminal, plain lines if the user asks for
    them. Used with `with`."""

    def __init__(self, display: Display, always: bool) -> None:
        self._display, self._in_place, self._always = display, Display.usable(), always
        self._next = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        wanted = self._always or (self._in_place and progress.seconds + progress.sweep_seconds >= _FIRST)
        if not wanted or now < self._next:
            return
        self._next = now + _EVERY
        if self._in_place:
            from rich.text import Text

            self._display.show(Text(line(progress), no_wrap=True, overflow="ellipsis"))
        else:
            note(line(progress))

    def __exit__(self, *error: object) -> None:
        self._display.erase()


def line(progress: Progress) -> str:
    """The text of the line: rows in, rows/s, results, state and watermark. During the clean-up at the end: how far it
    is, and the time left."""
    if progress.to_sweep:
        return f"{sweeping(progress)} | {progress.rows_out:,} out"
    parts = [
        f"{progress.rows_in:,} rows in",
        f"{progress.rows_per_second:,.0f} rows/s",
        f"{progress.rows_out:,} out",
        f"state {progress.state_rows:,} rows, {progress.memory_bytes / 1e6:,.1f} MB",
        f"watermark {moment(progress.watermark_us)}",
    ]
    parts += [f"{progress.rows_late:,} late"] if progress.rows_late else []
    parts += [f"{progress.rows_dead:,} dead"] if progress.rows_dead else []
    parts += on_disk(progress)
    parts += ["memory far too small"] if progress.little_memory else []
    return " | ".join(parts)


def on_disk(progress: Progress) -> list[str]:
    """How much is out of memory and how far its results are behind, or how far the clean-up at the end is; an empty
    list if no group has left memory."""
    if progress.to_sweep:
        return [sweeping(progress)]
    if not progress.groups_left and not progress.groups_on_disk:
        return []
    text = f"{_counted(progress.groups_on_disk, 'group')} on disk, log {progress.log_bytes / 1e6:,.1f} MB"
    behind = progress.results_behind_us
    return [f"{text}, their results up to {short(behind)} behind" if behind > 0 else text]


def sweeping(progress: Progress) -> str:
    """How far the clean-up at the end is, as a bar, and the time left.

    >>> sweeping(Progress(swept=57, to_sweep=140, sweep_seconds=24.2))
    'groups on disk: ████████░░░░░░░░░░░░ 57 of 140 swept, 40 %, 35 s left'
    """
    share = progress.swept / progress.to_sweep
    bar = "█" * int(_BAR * share)
    text = f"groups on disk: {bar:░<{_BAR}} {progress.swept:,} of {progress.to_sweep:,} swept"
    left = progress.sweep_seconds_left
    return text if left is None else f"{text}, {int(100 * share)} %, {short(round(left) * 1_000_000)} left"


def moment(microseconds: int | None) -> str:
    """Format an event time for display."""
    if microseconds is None:
        return "-"
    try:
        when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{microseconds} us"
    return when.strftime("%Y-%m-%d %H:%M:%S")


def closing(summary: Summary) -> str:
    """The summary of a run in a sentence."""
    text = _rows(summary)
    odd = (
        (summary.rows_late, f"late{summary.late}"),
        (summary.rows_dead, f"dead{summary.dead}"),
    )
    text += "".join(f", {count:,} {what}" for count, what in odd if count)
    text += _not_computed(summary)
    text += _spilled(summary)
    if summary.waiting and not summary.stopped:
        text += f"; {summary.waiting:,} groups or rows wait for the watermark (--final gives their results)"
    if summary.groups_on_disk:
        groups = _counted(summary.groups_on_disk, "group")
        text += f"; some results of {groups} on disk come with the next run (--final gives them)"
    if summary.stopped:
        return f"stopped: {text}; what was written is complete up to here"
    return f"{'finished' if _was_finished(summary) else 'done'}: {text}"


def _not_computed(summary: Summary) -> str:
    """How many values of expressions could not be computed, and the first of them if it is known.

    >>> _not_computed(Summary(expression_errors=1, first_error="CAST(km AS DOUBLE) of 'n/a'"))
    ", 1 value could not be computed and is NULL: CAST(km AS DOUBLE) of 'n/a'"
    """
    if not summary.expression_errors:
        return ""
    one = summary.expression_errors == 1
    text = f", {_counted(summary.expression_errors, 'value')} could not be computed and {'is' if one else 'are'} NULL"
    if not summary.first_error:
        return text
    return f"{text}: {summary.first_error}" if one else f"{text} (first: {summary.first_error})"


def _spilled(summary: Summary) -> str:
    """What spilling did, if it did anything."""
    parts = [f"groups left memory {_counted(summary.groups_left, 'time')}"] if summary.groups_left else []
    if summary.sweeps:
        made = _counted(summary.sweep_results, "result")
        parts.append(f"{_counted(summary.sweeps, 'sweep')} made {made} later")
    if parts and summary.memory_limit is not None:
        parts[0] += f" ({size_text(summary.memory_limit)} for each slot)"
    return f"; {', '.join(parts)}" if parts else ""


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _rows(summary: Summary) -> str:
    """The rows of this run and, if the job has had other runs, of all runs."""
    took = f" in {summary.seconds:.2f} s ({summary.rows_per_second:,.0f} rows/s)"
    total = f"{summary.rows_in:,} rows in, {summary.rows_out:,} rows out"
    if not _had_other_runs(summary):
        return total + took
    if _was_finished(summary):
        this = "an earlier run ended this job and gave all its results"
    elif summary.run_rows_in:
        this = f"{summary.run_rows_in:,} new rows in, {summary.run_rows_out:,} rows out{took}"
    else:
        results = f", {summary.run_rows_out:,} rows out" if summary.run_rows_out else ""
        this = f"no new rows since the last run{results}"
    return f"{this}; over all runs {total}"


def _had_other_runs(summary: Summary) -> bool:
    return (summary.rows_in, summary.rows_out) != (summary.run_rows_in, summary.run_rows_out)


def _was_finished(summary: Summary) -> bool:
    return _had_other_runs(summary) and summary.finished and not summary.batches
