"""`eddyline run`: a script on the local engine."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from eddyline.cli.inputs import import_udfs, script_text, settings_of
from eddyline.cli.main import BEGAN
from eddyline.errors import SettingError


def command(options: argparse.Namespace) -> int:
    """Runs the script and prints the summary."""
    _refuse_later(options)
    settings = settings_of(options)
    text = script_text(options.script)
    import_udfs(options.udf)
    from eddyline.cli.progress import ProgressLine, closing
    from eddyline.runtime.job import prepare
    from eddyline.runtime.runner import LocalRunner

    runner = LocalRunner(prepare(text, seed=settings.seed, out=sys.stdout), settings, began=BEGAN)
    progress = ProgressLine(options.progress)
    with interrupts() as stop:
        try:
            summary = runner.run(stop.is_set, progress)
        finally:
            progress.clear()
    print(closing(summary), file=sys.stderr)
    if options.json:
        print(json.dumps(summary.as_dict()))
    return 0


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM set the event the first time, and end the process the second time."""
    asked = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()
        sys.stderr.write("\nstopping after the batch in hand (again: at once)\n")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _refuse_later(options: argparse.Namespace) -> None:
    if options.engine not in ("local", "spark"):
        raise SettingError(f"--engine is local or spark, not '{options.engine}'")
    later = {
        "--engine spark": options.engine == "spark",
        "--checkpoint": options.checkpoint is not None,
        "--follow": options.follow,
        "--live": options.live,
        "--conf": bool(options.conf),
    }
    for name, given in later.items():
        if given:
            raise SettingError(f"{name} is not built yet")
