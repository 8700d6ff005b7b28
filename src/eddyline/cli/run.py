"""`eddyline run`: a script on Spark, or on the local engine in this process."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.cli.main import BEGAN
from eddyline.cli.screen import Screen
from eddyline.cli.stopping import interrupts
from eddyline.cli.streams import note
from eddyline.errors import EddylineError, ScriptError, SettingError

if TYPE_CHECKING:
    from eddyline.runtime.runner import Runner
    from eddyline.runtime.summary import Summary
    from eddyline.settings import Settings


def command(options: argparse.Namespace) -> int:
    """Runs the script and prints the summary; if the job fails, what there is of it, with the error."""
    _check(options)
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    from eddyline.cli.progress import closing
    from eddyline.runtime.summary import Summary

    runner: Runner | None = None
    try:
        screen = Screen()
        out = screen.above(sys.stdout) if options.live else sys.stdout
        with _runner(options, text, settings, out) as runner:
            summary = _run(runner, screen if options.live else None, options.progress)
    except (ScriptError, SettingError):
        raise
    except EddylineError as error:
        if options.json:
            so_far = Summary() if runner is None else runner.summary(stopped=False)
            print(json.dumps(so_far.as_dict() | {"error": str(error)}))
        raise
    note(closing(summary))
    if options.json:
        print(json.dumps(summary.as_dict()))
    return 0


def _run(runner: Runner, screen: Screen | None, progress_always: bool) -> Summary:
    """With the live view if there is a screen for it, else with the progress line."""
    from eddyline.cli.live import live
    from eddyline.cli.progress import ProgressLine

    for warning in runner.warnings:
        note(f"warning: {warning}")
    with interrupts() as stop:
        view = ProgressLine(progress_always) if screen is None else live(runner, screen, stop.is_set)  # type: ignore[arg-type]
        with view:
            return runner.run(stop.is_set, view)


@contextlib.contextmanager
def _runner(options: argparse.Namespace, text: str, settings: Settings, out: TextIO) -> Iterator[Runner]:
    if options.engine == "local":
        from eddyline.runtime.checkpointed import CheckpointedRunner
        from eddyline.runtime.job import prepare
        from eddyline.runtime.runner import LocalRunner

        job = prepare(text, seed=settings.seed, out=out)
        if options.checkpoint is None:
            yield LocalRunner(job, settings, began=BEGAN)
        else:
            yield CheckpointedRunner(job, text, settings, options.checkpoint, began=BEGAN)
        return
    try:
        from eddyline.spark.start import on_spark
    except ModuleNotFoundError as error:
        raise SettingError(
            f"Spark needs PySpark ({error}); type: pip install 'eddyline[spark]', or use --engine local"
        ) from None
    conf = dict(pair.split("=", 1) for pair in options.conf)
    with on_spark(text, settings, conf, options.checkpoint, options.udf, out, BEGAN, options.follow) as runner:
        yield runner


def _check(options: argparse.Namespace) -> None:
    if options.engine not in ("local", "spark"):
        raise SettingError(f"--engine is local or spark, not '{options.engine}'")
    for pair in options.conf:
        if "=" not in pair:
            raise SettingError(f"--conf {pair}: it is SPARK_KEY=VALUE")
    local = options.engine == "local"
    if options.conf and local:
        raise SettingError("--conf is for --engine spark")
    if options.follow and local:
        raise SettingError("--follow with --engine local is not built yet")
