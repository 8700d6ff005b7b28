"""A query that is running in a thread of its own.

Invariant: `wait` and `stop` wait for an event that the thread sets when it ends, also after an error. `Thread.join`
would be wrong: on Python 3.11, after Ctrl-C interrupts a join, the thread counts as ended while it still runs.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from eddyline.api import notebook
from eddyline.api.inside import Inside
from eddyline.api.words import in_python
from eddyline.errors import EddylineError, SettingError
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.failures import told
from eddyline.runtime.running.runner import Runner
from eddyline.runtime.sinks.kept import KeptSink
from eddyline.settings import Settings

if TYPE_CHECKING:
    import pandas as pd


class Run:
    """A query that is running, or has ended; made by `start` of `el.query`.

    A run that was started without a sink keeps its results: read them with `to_arrow()`, `to_pandas()`, or one by one
    with `for batch in run`. `with query.start() as run:` stops the run at the end of the block.
    """

    def __init__(self, runner: Runner, settings: Settings, inside: Inside, kept: KeptSink | None = None) -> None:
        """`inside` knows the threads that call functions of the user for this run; `kept` has the results if there is
        no sink."""
        self.settings = settings
        self._runner, self._inside, self._kept = runner, inside, kept
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
        if an iteration has already taken results."""
        kept = self._results()
        self.wait()
        if kept.taken:
            raise SettingError("an iteration has taken results of this run, and gives each once; keep its batches")
        return pa.Table.from_batches(kept.unread(), self._runner.reporter.schema)

    def to_pandas(self) -> pd.DataFrame:
        """As `to_arrow`, but returns a pandas DataFrame."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise SettingError("to_pandas needs pandas; type: pip install 'pandas>=2.2,<3', or use to_arrow") from None
        return self.to_arrow().to_pandas()

    def progress(self) -> Progress:
        """The current progress of the run."""
        return self._runner.reporter.progress()

    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._runner.reporter.decisions

    def explain(self) -> str:
        """The plan and the measurements so far, as text."""
        return self._runner.reporter.explain()

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
        facts = ", ".join(f"{name} {value}" for name, value in notebook.facts(self.progress()).items())
        return f"<Run {self.state}: {self._error or facts}>"

    def _repr_html_(self) -> str:
        facts = {"state": self.state, **({} if self._error is None else {"error": str(self._error)})}
        return notebook.table(facts | notebook.facts(self.progress())) + notebook.folded("plan", self.explain())

    def _results(self) -> KeptSink:
        if self._kept is None:
            raise SettingError("the results of this run go to its sink; started without a sink it keeps them")
        if self._inside.here():
            raise SettingError("a function of a run cannot read the results of that run: it would wait for itself")
        return self._kept

    def _work(self) -> None:
        try:
            self._summary = self._runner.run(self._stop.is_set, lambda progress: None)
        except BaseException as error:
            self._error = in_python(told(error))
            if self._error is not error:
                self._error.__cause__ = error
        finally:
            self._over.set()
            if self._kept is not None:
                self._kept.end()
