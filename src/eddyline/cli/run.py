"""`eddyline run`: a script on the local engine."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.cli.main import BEGAN
from eddyline.cli.screen import Screen
from eddyline.cli.stopping import interrupts
from eddyline.cli.streams import note
from eddyline.errors import EddylineError, ScriptError, SettingError

if TYPE_CHECKING:
    from eddyline.runtime.runner import LocalRunner
    from eddyline.runtime.summary import Summary


def command(options: argparse.Namespace) -> int:
    """Runs the script and prints the summary; if the job fails, what there is of it, with the error."""
    _refuse_later(options)
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    from eddyline.cli.progress import closing
    from eddyline.runtime.job import prepare
    from eddyline.runtime.runner import LocalRunner
    from eddyline.runtime.summary import Summary

    runner: LocalRunner | None = None
    try:
        screen = Screen()
        out = screen.above(sys.stdout) if options.live else sys.stdout
        runner = LocalRunner(prepare(text, seed=settings.seed, out=out), settings, began=BEGAN)
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


def _run(runner: LocalRunner, screen: Screen | None, progress_always: bool) -> Summary:
    """With the live view if there is a screen for it, else with the progress line."""
    from eddyline.cli.live import live
    from eddyline.cli.progress import ProgressLine

    for warning in runner.warnings:
        note(f"warning: {warning}")
    with interrupts() as stop:
        view = ProgressLine(progress_always) if screen is None else live(runner, screen, stop.is_set)
        with view:
            return runner.run(stop.is_set, view)


def _refuse_later(options: argparse.Namespace) -> None:
    if options.engine not in ("local", "spark"):
        raise SettingError(f"--engine is local or spark, not '{options.engine}'")
    later = {
        "--engine spark": options.engine == "spark",
        "--checkpoint": options.checkpoint is not None,
        "--follow": options.follow,
        "--conf": bool(options.conf),
    }
    for name, given in later.items():
        if given:
            raise SettingError(f"{name} is not built yet")
