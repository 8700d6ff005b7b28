"""Runs a job and records it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import nullcontext

from eddyline.runtime.recording.feed import EventFeed
from eddyline.runtime.recording.files import PART_BYTES, RecordFile
from eddyline.runtime.recording.recorder import SAMPLE, Recorder
from eddyline.runtime.recording.run_event import run_event
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.runner import Runner
from eddyline.settings import Settings

_log = logging.getLogger(__name__)


def recorder_of(
    runner: Runner,
    script: str,
    settings: Settings,
    engine: str,
    path: str | os.PathLike[str] | None = None,
    feed: EventFeed | None = None,
    warn: Callable[[str], None] = _log.warning,
    part_bytes: int = PART_BYTES,
    sample: float = SAMPLE,
    clock: Callable[[], float] = time.perf_counter,
) -> Recorder:
    """The recorder of a run that has not begun, to a file, to a feed or to both, with a sample every `sample` seconds
    at most. SettingError if the file cannot be written; if writing fails later, `warn` gets one message and the run
    goes on."""
    reporter = runner.reporter
    file = None if path is None else RecordFile(path, warn, part_bytes)
    run = run_event(script, reporter.query, settings, engine, reporter.explain(), reporter.slots)
    return Recorder(reporter, run, feed, file, clock, sample)


def run_recorded(
    runner: Runner, recorder: Recorder | None, stop: Callable[[], bool], watch: Callable[[Progress], None]
) -> Summary:
    """As `runner.run`, and records the run if there is a recorder."""

    def stopping() -> bool:
        if recorder is not None:
            recorder.idle()
        return stop()

    def watching(progress: Progress) -> None:
        if recorder is not None:
            recorder(progress)
        watch(progress)

    with recorder or nullcontext():
        summary = runner.run(stopping, watching)
        if recorder is not None:
            recorder.end(summary)
    return summary
