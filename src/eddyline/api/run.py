"""A query that is running in a thread of its own.

Invariant: `wait` and `stop` wait for an event that the thread sets when it ends, also after an error. `Thread.join`
would be wrong: on Python 3.11, after Ctrl-C interrupts a join, the thread counts as ended while it still runs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eddyline.api import notebook
from eddyline.api.inside import Inside
from eddyline.api.plots import routes_over_time
from eddyline.api.words import in_python
from eddyline.dashboard.server import Dashboard
from eddyline.engine.groups.online import RunningEstimate
from eddyline.errors import EddylineError, SettingError, shown
from eddyline.extras import install
from eddyline.runtime.recording.feed import EventFeed
from eddyline.runtime.recording.recorded import run_recorded
from eddyline.runtime.recording.recorder import Recorder
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.failures import told
from eddyline.runtime.running.runner import Runner
from eddyline.runtime.sinks.kept import KeptSink
from eddyline.settings import Settings

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.figure import Figure

    from eddyline.spark.results import SparkFrame


@dataclass(frozen=True)
class Recording:
    """The events of a run, on their way from the run to its readers."""

    feed: EventFeed
    recorder: Recorder
    """Makes the events and adds them to the feed."""
    dashboard: Dashboard | None
    """Shows the events of the feed."""


class Run:
    """A query that is running, or has ended; made by `start` of `el.query`.

    A run that was started without a sink keeps its results: read them with `to_arrow()`, `to_pandas()`, `to_polars()`
    or `to_spark()`, or one by one with `for batch in run`. `with query.start() as run:` stops the run at the end of the
    block.
    """

    def __init__(
        self,
        runner: Runner,
        settings: Settings,
        inside: Inside,
        kept: KeptSink | None,
        endless: bool,
        frame_of: Callable[[pa.Table], Any],
        recording: Recording,
    ) -> None:
        """`inside` knows the threads that call functions of the user for this run; `kept` has the results if there is
        no sink. An `endless` run ends only when it is stopped. `frame_of` makes a DataFrame of Spark."""
        self.settings = settings
        self.feed = recording.feed
        """What was measured and decided so far, as events; of a long run, its beginning in less detail."""
        self._dashboard = recording.dashboard
        self._runner, self._inside, self._kept = runner, inside, kept
        self._endless, self._frame_of, self._recorder = endless, frame_of, recording.recorder
        self._stop, self._over = threading.Event(), threading.Event()
        self._summary: Summary | None = None
        self._error: EddylineError | None = None
        threading.Thread(target=inside.calling(self._work), name="eddyline", daemon=True).start()

    def stop(self) -> None:
        """Ends the run after the current batch, and waits for the end. It does not wait for further rows of a stream.
        Called from a sink, it returns at once and the run ends afterwards."""
        self._stop.set()
        if self._kept is not None:
            self._kept.release()
        if not self._inside.here():
            self._over.wait()

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Waits for the end, at most `timeout` seconds. Returns what the run did, None if it is still running; raises
        the error of a run that failed. Meanwhile unread results are kept in memory without a limit."""
        if self._inside.here() and not self._over.is_set():
            raise SettingError("a run cannot be waited for by its own sink or function: that would never end")
        with contextlib.nullcontext() if self._kept is None else self._kept.whole():
            self._over.wait(timeout)
        if self._error is not None:
            raise self._error
        return self._summary

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The results as they come, in record batches, each of which is given once. The run pauses while about 64 MB of
        results are unread. If the run fails, its error is raised after the batches that came before it."""
        kept = self._results()
        while (batch := kept.next()) is not None:
            yield batch
        self.wait()

    def to_arrow(self) -> pa.Table:
        """Waits for the end and returns the results as a table. Raises the error of a run that failed, and SettingError
        if an iteration has already taken results, or if the run has no end and was not stopped."""
        kept = self._results()
        if self._endless and not self._stop.is_set() and not self._over.is_set():
            raise SettingError(
                "this run has no end, so its results are never complete: stop it first with run.stop(), or read them"
                " as they come, with `for batch in run`"
            )
        self.wait()
        if kept.taken:
            raise SettingError("an iteration has taken results of this run, and gives each once; keep its batches")
        return pa.Table.from_batches(kept.unread(), self._runner.reporter.schema)

    def to_pandas(self) -> pd.DataFrame:
        """As `to_arrow`, but returns a pandas DataFrame."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise SettingError(f"to_pandas needs pandas; type: {install('pandas')}, or use to_arrow") from None
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """As `to_arrow`, but returns a polars DataFrame."""
        try:
            import polars
        except ModuleNotFoundError:
            raise SettingError(f"to_polars needs polars; type: {install('polars')}, or use to_arrow") from None
        try:
            found = polars.from_arrow(self.to_arrow())
        except polars.exceptions.PolarsError as error:  # an interval with months, for example
            raise SettingError(f"polars cannot hold these results: {error}; use to_arrow") from None
        assert isinstance(found, polars.DataFrame)
        return found

    def to_spark(self) -> SparkFrame:
        """As `to_arrow`, but returns a DataFrame of Spark: of the session of the run, or else of the existing session
        or a new one. All results pass through this process; `foreach_batch` and sinks spare that."""
        found: SparkFrame = self._frame_of(self.to_arrow())
        return found

    def prefer(self, condition: str | None) -> None:
        """From the next batch on, rows that satisfy a condition over one stream or table come first, such as "o.level =
        'gold'"; with None no row does. The results are the same, in another order. SettingError if the condition is
        wrong; then the old one stays."""
        if not (condition is None or isinstance(condition, str)):
            raise SettingError(f"a preference is a text of SQL, or None, not {shown(condition)}")
        self._runner.prefer(condition)

    def estimates(self, groups: int | None = None) -> tuple[RunningEstimate, ...]:
        """Estimates of the aggregates of the groups that are open, as of the last batch: the final value, and half of
        its 95 % confidence interval. The groups with the most rows come first; `groups` limits their number.
        SettingError unless the run was started with the setting estimates=on."""
        if self.settings.estimates != "on":
            raise SettingError("a run has estimates if it is started with settings={'estimates': 'on'}")
        return self._runner.reporter.estimates(groups)

    def progress(self) -> Progress:
        """The current progress of the run."""
        return self._runner.reporter.progress()

    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._runner.reporter.decisions

    @property
    def dashboard(self) -> str | None:
        """The address of the dashboard, for a browser; None if the run was started without one."""
        return None if self._dashboard is None else self._dashboard.address

    def explain(self) -> str:
        """The plan and the measurements so far, as text."""
        return self._runner.reporter.explain()

    def plot_routes(self) -> Figure:
        """A picture of the run so far: rows read per second, the route of each stream over time, and where the plan
        changed. A notebook shows it; `run.plot_routes().savefig("routes.png")` saves it. Needs matplotlib."""
        notebook.figures_inline()
        return routes_over_time(event for _, event in self.feed.since())

    def exception(self) -> EddylineError | None:
        """The error of a run that failed, else None."""
        return self._error

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    @property
    def state(self) -> str:
        """running, stopping, stopped, done or failed. A run that keeps its results stays running while about 64 MB of
        them are unread: to wait for its end, call `wait`, `to_arrow` or `to_pandas`, or iterate over it."""
        if self._error is not None:
            return "failed"
        if self._summary is not None:
            return "stopped" if self._summary.stopped else "done"
        return "stopping" if self._stop.is_set() else "running"

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts().items())
        return f"<Run {self.state}: {self._error or facts}>"

    def _facts(self) -> dict[str, str]:
        """What is shown of the progress. A run that is done has read all rows and waits for none: no watermark."""
        facts = notebook.facts(self.progress())
        if self.state == "done":
            facts.pop("watermark", None)
        return facts

    def _repr_html_(self) -> str:
        facts = {"state": self.state, **({} if self._error is None else {"error": str(self._error)})}
        facts |= self._facts() | notebook.routes(event for _, event in self.feed.since())
        return notebook.table(facts) + notebook.folded("plan", self.explain())

    def _ipython_display_(self) -> None:
        """In a notebook, what is shown follows the run until it ends."""
        notebook.show(self, self._over)

    def _results(self) -> KeptSink:
        if self._kept is None:
            raise SettingError("the results of this run go to its sink; started without a sink it keeps them")
        if self._inside.here():
            raise SettingError("a function of a run cannot read the results of that run: it would wait for itself")
        return self._kept

    def _work(self) -> None:
        try:
            self._summary = run_recorded(self._runner, self._recorder, self._stop.is_set, lambda progress: None)
        except BaseException as error:
            self._error = in_python(told(error))
            if self._error is not error:
                self._error.__cause__ = error
        finally:
            if self._dashboard is not None:
                self._dashboard.close()
            self._over.set()
            if self._kept is not None:
                self._kept.end()
