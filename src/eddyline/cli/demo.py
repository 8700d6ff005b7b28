"""`eddyline demo`: joins four generated streams, whose data drifts, on Spark, and shows how the engine adapts and what
that is worth.

The same job runs twice at once, with the adaptive order and with a fixed one, in one session: the two take turns, batch
by batch (demo_turns.py), so they meet the same load of the machine. Their results are compared: routes change the cost
of a query, never its results.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from eddyline.cli.demo_job import batch_rows, phases, script
from eddyline.cli.demo_sides import JoinWork, Side, event_time
from eddyline.cli.demo_turns import Turns
from eddyline.cli.display import Display
from eddyline.cli.live import LiveLines, LiveView, live
from eddyline.cli.main import BEGAN
from eddyline.cli.progress import ProgressLine
from eddyline.cli.stopping import StopAsked, interrupts, last_words
from eddyline.cli.streams import note
from eddyline.cli.watching import dashboard
from eddyline.errors import InternalError, JobError, SettingError
from eddyline.extras import install
from eddyline.settings import Settings

if TYPE_CHECKING:
    import pyarrow as pa

    from eddyline.runtime.recording.feed import EventFeed
    from eddyline.runtime.recording.recorder import Recorder
    from eddyline.runtime.reporting.summary import Progress
    from eddyline.runtime.running.runner import Runner

NAME = "eddyline-demo"
"""The file name of the picture and of the script."""
ROUTERS = "auto", "fixed"

_MakeRunner = Callable[[str, Settings, Callable[[], float]], AbstractContextManager["Runner"]]
"""A runner for a script with settings and a clock."""


def command(options: argparse.Namespace) -> int:
    """Run both sides, and report the differences."""
    from eddyline.cli.demo_story import after_drift, stories
    from eddyline.cli.demo_text import introduction, report

    out, seconds = Path(options.out), options.seconds
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{NAME}.sql").write_text(script(seconds, f"{NAME}-out"), encoding="utf-8")
    print(introduction(seconds, options.engine, out / f"{NAME}.sql"), flush=True)
    folder, display = tempfile.mkdtemp(prefix="eddyline-demo-"), Display()
    try:
        with (
            dashboard(_with_dashboard(options)) as feed,
            _engine(options.engine) as make,
            interrupts(display.leave) as stop,
        ):
            two = _TwoSides(options, folder, make, stop, display, feed)
            two.run()
            results = 0 if stop.is_set() else _checked(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    adaptive, fixed = two.sides
    told, drifted = stories(seconds, adaptive, fixed), after_drift(seconds, adaptive, fixed)
    last_words()
    if stop.is_set():
        note("stopped")
    else:
        picture = _picture(seconds, adaptive, fixed, out / f"{NAME}.png")
        print(report(told, drifted, results, out / f"{NAME}.sql", picture))
    if options.json and adaptive.summary is not None:
        demo = {"phases": [story.as_dict() for story in told], "after_drift": drifted.as_dict()}
        print(json.dumps(adaptive.summary.as_dict() | {"demo": demo}))
    return stop.status if stop.is_set() else 0


def _with_dashboard(options: argparse.Namespace) -> argparse.Namespace:
    """The options, with a dashboard unless it is to be shown on the terminal or cannot be served."""
    if options.dashboard is None and not options.live:
        if find_spec("uvicorn") and find_spec("starlette"):
            options.dashboard = ""
        else:
            note(f"type {install('dashboard')} to watch it in the browser")
    return options


@contextlib.contextmanager
def _engine(name: str) -> Iterator[_MakeRunner]:
    """Makes runners on Spark, in one session, or on the local engine."""
    if name == "local":
        from eddyline.runtime.running.job import prepare
        from eddyline.runtime.running.runner import LocalRunner

        yield lambda text, settings, clock: nullcontext(LocalRunner(prepare(text), settings, clock=clock, began=BEGAN))
        return
    try:
        from eddyline.spark.session import begin, session

        note("starting Spark ...")
        begin({})
        from eddyline.spark.start import on_spark
    except ModuleNotFoundError as error:
        raise SettingError(f"Spark needs PySpark ({error}); type: {install('spark')}, or use --engine local") from None
    spark, ours = session({})
    try:
        yield lambda text, settings, clock: on_spark(text, settings, {}, None, (), io.StringIO(), BEGAN, clock=clock)
    finally:
        if ours:
            spark.stop()


@dataclass
class _TwoSides:
    """Runs the adaptive side, which is shown and recorded, in this thread, and the fixed one in another."""

    options: argparse.Namespace
    folder: str
    make: _MakeRunner
    stop: StopAsked
    display: Display
    feed: EventFeed | None
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))
    _failed: list[BaseException] = field(default_factory=list)

    def run(self) -> None:
        """Run both sides to the end, or until they are stopped. If one fails, both end, and its error is raised."""
        turns = Turns(self._is_over)
        other = threading.Thread(target=self._run_side, args=(1, turns), daemon=True)
        other.start()
        self._run_side(0, turns)
        other.join()
        if self._failed:
            raise self._failed[0]

    def _is_over(self) -> bool:
        return self.stop.is_set() or bool(self._failed)

    def _run_side(self, number: int, turns: Turns) -> None:
        try:
            turns.wait(number)
            if not self._is_over():
                text = script(self.options.seconds, f"{self.folder}/{ROUTERS[number]}")
                settings = Settings(router=ROUTERS[number], plan="mjoin", batch_rows=batch_rows(self.options.seconds))
                with self.make(text, settings, partial(turns.seconds, number)) as runner:
                    recorder = None if number else self._recorder(runner, text, settings, partial(turns.seconds, 0))
                    self._follow(number, turns, runner, recorder)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._failed.append(error)
        finally:
            turns.leave()

    def _follow(self, number: int, turns: Turns, runner: Runner, recorder: Recorder | None) -> None:
        """Run a side and note its batches; in the record the moments when the data changes."""
        from eddyline.runtime.recording.recorded import run_recorded

        side, recorded = self.sides[number], ""

        def watch(progress: Progress) -> None:
            nonlocal recorded
            if recorder is not None and (words := self._words(progress)) != recorded:
                recorder.note(words, "info")
                recorded = words
            if view is not None:
                view(progress)
            if side.watch(runner.reporter, progress, self.options.seconds):
                turns.pass_on(number)

        with nullcontext() if number else self._view(runner) as view:
            side.summary = run_recorded(runner, recorder, self._is_over, watch)

    def _view(self, runner: Runner) -> LiveView | LiveLines | ProgressLine:
        """The view of the adaptive side: the live view, unless it is shown in the browser."""
        if self.options.live or self.feed is None or not Display.usable():
            return live(runner.reporter, self.display, self._compared if Display.usable() else self._words)
        return ProgressLine(self.display, always=False)

    def _words(self, progress: Progress) -> str:
        """What the data does at present."""
        now, drift = event_time(progress), phases(self.options.seconds)
        phase = next((p for p in drift if now < p.end), drift[-1])
        return f"{phase.begin} to {phase.end} s of event time: {phase.what}"

    def _compared(self, progress: Progress) -> str:
        """What the data does at present, and what the last batch cost the fixed side."""
        mine, other = (side.batches[-1].work if side.batches else JoinWork() for side in self.sides)
        return f"{self._words(progress)}; the last batch with a fixed order: {other.times(mine):.1f} times the CPU"

    def _recorder(self, runner: Runner, text: str, settings: Settings, clock: Callable[[], float]) -> Recorder | None:
        if self.options.record is None and self.feed is None:
            return None
        from eddyline.runtime.recording.recorded import recorder_of

        path, feed = self.options.record, self.feed
        return recorder_of(runner, text, settings, self.options.engine, path, feed, warn=note, clock=clock)


def _checked(folder: str) -> int:
    """The number of results. InternalError unless both sides gave the same ones."""
    import pyarrow.dataset as ds

    def rows(router: str) -> pa.Table:
        table = ds.dataset(f"{folder}/{router}", format="parquet").to_table()
        return table.sort_by([(name, "ascending") for name in table.column_names])

    mine, other = map(rows, ROUTERS)
    if not mine.equals(other):
        raise InternalError(f"two runs of the demo gave different results, {mine.num_rows} and {other.num_rows} rows")
    return int(mine.num_rows)


def _picture(seconds: int, adaptive: Side, fixed: Side, path: Path) -> Path | None:
    """Where the picture was drawn; None, with a line that says why, if it cannot be."""
    from eddyline.cli.demo_picture import draw

    try:
        draw(seconds, adaptive, fixed, path)
    except JobError as error:
        note(f"no picture: {error}")
        return None
    return path
