"""`eddyline run`: a script on Spark, or on the local engine in this process."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from eddyline.cli.checked import Checked, check, check_options
from eddyline.cli.display import Display
from eddyline.cli.main import BEGAN
from eddyline.cli.prefer_from import PreferFrom
from eddyline.cli.progress import ProgressLine, closing
from eddyline.cli.stopping import StopAsked, interrupts, last_words
from eddyline.cli.streams import note, put
from eddyline.cli.watching import dashboard
from eddyline.errors import EddylineError, ScriptError, SettingError
from eddyline.extras import install
from eddyline.kernels.cache import choose_folder, is_filled, without_cache

if TYPE_CHECKING:
    from eddyline.cli.live import LiveLines, LiveView
    from eddyline.runtime.recording.feed import EventFeed
    from eddyline.runtime.recording.recorder import Recorder
    from eddyline.runtime.reporting.summary import Progress, Summary
    from eddyline.runtime.running.runner import Runner


def command(options: argparse.Namespace) -> int:
    """Run the script and print its summary; if the job fails, the summary so far, with the error."""
    display = Display()
    out = display.above(sys.stdout)
    runner: Runner | None = None
    try:
        checked = check(options, out)
        kept = choose_folder()
        if not is_filled():
            once = "compiling the kernels for this machine, once: the first run takes half a minute longer"
            note(once if kept else "; ".join(without_cache()))
        with (
            dashboard(options) as feed,
            _runner(options, checked, out) as runner,
            interrupts(display.leave) as stop,
        ):
            summary = _run(runner, display, options, _recorder(runner, options, checked, feed), stop)
    except (ScriptError, SettingError):
        raise
    except EddylineError as error:
        if options.json:
            from eddyline.runtime.reporting.summary import Summary

            so_far = Summary() if runner is None else runner.reporter.summary(stopped=False)
            put(json.dumps(so_far.as_dict() | {"error": str(error)}) + "\n")
        raise
    display.erase()
    last_words()
    note(closing(summary))
    for warning in summary.warnings if not summary.stopped else ():  # a signal leaves one line
        if warning not in runner.reporter.warnings:
            note(f"warning: {warning}")
    if options.json:
        put(json.dumps(summary.as_dict()) + "\n")
    return stop.status if summary.stopped else 0


def _run(
    runner: Runner, display: Display, options: argparse.Namespace, recorder: Recorder | None, stop: StopAsked
) -> Summary:
    """Run the job with the live view if the options ask for it, else with the progress line."""
    for warning in runner.reporter.warnings:
        note(f"warning: {warning}")
    preferred = None if options.prefer_from is None else PreferFrom(options.prefer_from, runner.prefer)
    with _view(runner, display, options) as view:

        def watch(progress: Progress) -> None:
            if preferred is not None:
                preferred.look()
            view(progress)

        from eddyline.runtime.recording.recorded import run_recorded

        return run_recorded(runner, recorder, stop.is_set, watch)


def _recorder(runner: Runner, options: argparse.Namespace, checked: Checked, feed: EventFeed | None) -> Recorder | None:
    if options.record is None and feed is None:
        return None
    from eddyline.runtime.recording.recorded import recorder_of

    return recorder_of(
        runner,
        checked.text,
        checked.settings,
        options.engine,
        options.record,
        feed,
        warn=lambda text: note(f"warning: {text}"),
        part_bytes=options.record_size,
    )


def _view(runner: Runner, display: Display, options: argparse.Namespace) -> LiveView | LiveLines | ProgressLine:
    if not options.live:
        return ProgressLine(display, options.progress)
    from eddyline.cli.live import live

    return live(runner.reporter, display)


@contextlib.contextmanager
def _runner(options: argparse.Namespace, checked: Checked, out: TextIO) -> Iterator[Runner]:
    text, settings = checked.text, checked.settings
    if options.engine == "local":
        assert checked.job is not None
        from eddyline.runtime.running.runner import LocalRunner

        yield LocalRunner(checked.job, settings, options.checkpoint, began=BEGAN, follow=options.follow)
        return
    conf = check_options(options)
    try:
        from eddyline.spark.session import begin

        note("starting Spark ...")
        begin(conf)
        from eddyline.spark.start import on_spark
    except ModuleNotFoundError as error:
        raise SettingError(f"Spark needs PySpark ({error}); type: {install('spark')}, or use --engine local") from None
    given = options.checkpoint, options.udf, out, BEGAN, options.follow
    with on_spark(text, settings, conf, *given, checked.job) as runner:
        yield runner
