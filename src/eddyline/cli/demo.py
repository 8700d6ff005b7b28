"""`eddyline demo`: joins four generated streams, whose data drifts, on Spark, and shows how the engine adapts; then
runs a part of the same rows with a fixed order, and with Spark's own joins.

All runs are in one Spark session, one after the other, after a short run that compiles and loads everything once. Their
results are counted and compared: routes change the cost of a query, never its results.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from eddyline.cli.demo_job import START, WATCHED, WINDOW, files_script, phases, script
from eddyline.cli.demo_runs import BatchMark, Demo, Own, Ran
from eddyline.cli.display import Display
from eddyline.cli.live import LiveLines, LiveView, Watched, live
from eddyline.cli.main import BEGAN
from eddyline.cli.stopping import interrupts
from eddyline.cli.streams import note
from eddyline.cli.watching import dashboard
from eddyline.errors import InternalError, JobError, SettingError
from eddyline.settings import Settings

if TYPE_CHECKING:
    from eddyline.runtime.recording.feed import EventFeed
    from eddyline.runtime.recording.recorder import Recorder
    from eddyline.runtime.reporting.summary import Progress
    from eddyline.runtime.running.runner import Runner

SHORT, SMALL = 4, 65536
"""The warm-up run: its seconds of event time, and the rows of its batches, which are enough for a first search for
plans."""
NAME = "eddyline-demo"
"""The file name of the picture and of the script."""

Stop = Callable[[], bool]
MakeRecorder = Callable[["Runner"], "Recorder | None"]
"""The recorder of a run that has not begun; None if it is not recorded."""


Words = Callable[["Progress"], str]
"""What the data does at present."""


@dataclass(frozen=True)
class _DemoRun:
    """One run of the demo: its script, what is noted of it (`ran`), when it stops, and how it is shown."""

    script: str
    settings: Settings
    ran: Ran
    stop: Stop
    view: Callable[[Watched, Display], LiveLines | LiveView] | None = None
    record: MakeRecorder = lambda runner: None
    words: Words = lambda progress: ""


def command(options: argparse.Namespace) -> int:
    """Run the job, then a part of it with a fixed order and with Spark's own joins, and report the differences."""
    from eddyline.cli.demo_picture import draw
    from eddyline.cli.demo_told import introduction, told

    out, seconds = Path(options.out), options.seconds
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{NAME}.sql").write_text(script(seconds, f"{NAME}-out"), encoding="utf-8")
    print(introduction(seconds, options.engine, out / f"{NAME}.sql"), flush=True)
    folder = tempfile.mkdtemp(prefix="eddyline-demo-")
    try:
        display = Display()
        with (
            dashboard(_with_dashboard(options)) as feed,
            interrupts(display.leave) as stop,
            _engine(options.engine, display) as run,
        ):
            shown = _Showing(options.live or feed is None or not Display.usable(), feed, options.record)
            demo = _measured(seconds, options.engine, run, folder, stop.is_set, shown)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if stop.is_set():
        note("stopped")
    else:
        picture: Path | None = out / f"{NAME}.png"
        try:
            draw(demo, out / f"{NAME}.png")
        except JobError as error:
            note(f"no picture: {error}")
            picture = None
        print(told(demo, out / f"{NAME}.sql", picture))
    if options.json and demo.adaptive.summary is not None:
        print(json.dumps(demo.adaptive.summary.as_dict()))
    return 0


def _with_dashboard(options: argparse.Namespace) -> argparse.Namespace:
    """The options, with a dashboard unless it is to be shown on the terminal or cannot be served."""
    if options.dashboard is None and not options.live:
        if find_spec("uvicorn") and find_spec("starlette"):
            options.dashboard = ""
        else:
            note("type pip install 'eddyline[dashboard]' to watch it in the browser")
    return options


def _measured(seconds: int, engine: str, run: _RunDemo, folder: str, stop: Stop, how: _Showing) -> Demo:
    note("a short run first, which compiles and loads what is loaded once ...")
    run(_DemoRun(script(SHORT, f"{folder}/short"), Settings(batch_rows=SMALL), Ran(), stop))
    adaptive, fixed, until, own = Ran(), Ran(), seconds // 2, None
    if not stop():
        _watched(seconds, engine, run, f"{folder}/adaptive", adaptive, stop, how)
    if not stop():
        note(f"\nthe first {until} s of the same rows once more, with a fixed order (router=fixed plan=mjoin) ...")
        far = lambda: stop() or fixed.come_to >= until  # noqa: E731
        run(_DemoRun(script(seconds, f"{folder}/fixed"), Settings(router="fixed", plan="mjoin"), fixed, far))
    if not stop() and engine == "spark":
        own = _own(seconds, max(WINDOW, seconds // 12), folder, stop)
    if not stop():
        _same(f"{folder}/adaptive", until, counted(f"{folder}/fixed", until))
        if own is not None:
            _same(f"{folder}/adaptive", own.until, own.results)
    results = counted(f"{folder}/adaptive", until) if not stop() else 0
    return Demo(seconds, engine, adaptive, fixed, until, results, own)


@dataclass(frozen=True)
class _Showing:
    """How the watched run is shown: in the terminal, to a dashboard, in a record."""

    in_terminal: bool
    feed: EventFeed | None
    record: str | None


_RunDemo = Callable[[_DemoRun], None]


def _watched(seconds: int, engine: str, run: _RunDemo, out: str, ran: Ran, stop: Stop, how: _Showing) -> None:
    """Run with the live view, or with lines if there is no terminal, or on the dashboard; all show when the data
    changes."""
    drift = phases(seconds)

    def words(progress: Progress) -> str:
        now = event_time(progress)
        phase = next((p for p in drift if now < p.end), drift[-1])
        return f"{phase.begin} to {phase.end} s of event time: {phase.what}"

    def view(run: Watched, display: Display) -> LiveLines | LiveView:
        return live(run, display, words)

    def recorder(runner: Runner) -> Recorder | None:
        if how.record is None and how.feed is None:
            return None
        from eddyline.runtime.recording.recorded import recorder_of

        return recorder_of(runner, script(seconds, out), Settings(), engine, how.record, how.feed, warn=note)

    run(_DemoRun(script(seconds, out), Settings(), ran, stop, view if how.in_terminal else None, recorder, words))


def event_time(progress: Progress) -> float:
    """The seconds of event time that all streams have reached."""
    return 0.0 if progress.watermark_us is None else max(0.0, (progress.watermark_us - START) / 1e6)


@contextlib.contextmanager
def _engine(name: str, display: Display) -> Iterator[_RunDemo]:
    """Runs jobs on Spark, in one session, or on the local engine."""
    if name == "local":
        from eddyline.runtime.running.job import prepare
        from eddyline.runtime.running.runner import LocalRunner

        yield lambda part: _follow(LocalRunner(prepare(part.script), part.settings, began=BEGAN), part, display)
        return
    try:
        from eddyline.spark.session import session
        from eddyline.spark.start import on_spark
    except ModuleNotFoundError as error:
        raise SettingError(
            f"Spark needs PySpark ({error}); type: pip install 'eddyline[spark]', or use --engine local"
        ) from None
    spark, ours = session({})

    def on_the_session(part: _DemoRun) -> None:
        with on_spark(part.script, part.settings, {}, None, (), io.StringIO(), BEGAN) as runner:
            _follow(runner, part, display)

    try:
        yield on_the_session
    finally:
        if ours:
            spark.stop()


def _follow(runner: Runner, part: _DemoRun, display: Display) -> None:
    """Run a job and note its batches and decisions, and in the record the moments when `words` change."""
    from eddyline.cli.progress import ProgressLine
    from eddyline.routing.report import short_step
    from eddyline.runtime.recording.recorded import run_recorded

    shown = part.view(runner.reporter, display) if part.view else ProgressLine(display, always=False)
    ran, recorder, known, said = part.ran, part.record(runner), 0, ""

    def watch(progress: Progress) -> None:
        nonlocal known, said
        report = runner.reporter.report()
        event = ran.come_to if progress.watermark_us is None else event_time(progress)
        route = report.routes[WATCHED]
        steps = [report.query.sources[WATCHED].alias, *(short_step(c.step, report.query) for c, _ in route.steps)]
        ran.marks.append(BatchMark(progress.rows_in, progress.seconds, event, " -> ".join(steps)))
        new, known = sum(report.counts.values()) - known, sum(report.counts.values())
        ran.decisions += [(event, d) for d in (report.decisions[-new:] if new else ())]
        if recorder is not None and (new_words := part.words(progress)) != said:
            recorder.note(new_words, "info")
            said = new_words
        shown(progress)

    with shown:
        ran.summary = run_recorded(runner, recorder, part.stop, watch)


def _own(seconds: int, until: int, folder: str, stop: Stop) -> Own | None:
    """Run the same join with Spark's own joins, up to `until`."""
    import pyarrow.dataset as ds

    from eddyline.cli.demo_job import STREAMS
    from eddyline.runtime.running.job import prepare
    from eddyline.runtime.running.runner import LocalRunner
    from eddyline.spark.own_joins import OwnJoin, files_of
    from eddyline.spark.own_joins import run as run_own
    from eddyline.spark.session import session

    note(f"the first {until} s of the same rows once more, with Spark's own joins ...")
    for name in STREAMS:
        job = prepare(files_script(seconds, until, name, f"{folder}/files"))
        runner = LocalRunner(job, Settings(batch_rows=SMALL))
        runner.run(lambda runner=runner: stop() or event_time(runner.reporter.progress()) >= until)  # type: ignore[misc]
    if stop():
        return None
    first, *others = STREAMS
    join = OwnJoin(files_of(f"{folder}/files"), first, [(name, "k", first) for name in others], WINDOW)
    took, rows = run_own(session({})[0], join, f"{folder}/own", 1, stop)
    if stop():
        return None
    files = [str(path) for path in Path(folder, "own").glob("*.parquet")]
    return Own(until, rows / took, ds.dataset(files).count_rows() if files else 0)


def _same(folder: str, until: int, results: int) -> None:
    """InternalError unless the files of a folder have `results` results with a time before `until`."""
    found = counted(folder, until)
    if found != results:
        raise InternalError(f"two runs of the demo gave {found} and {results} results for the first {until} s")


def counted(folder: str, until: int) -> int:
    """The number of results with a time before `until` in the files of a folder."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    limit = pa.scalar(START + until * 1_000_000, pa.timestamp("us"))
    return int(ds.dataset(folder, format="parquet").count_rows(filter=ds.field("ts") < limit))
