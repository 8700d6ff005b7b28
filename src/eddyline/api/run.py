"""A query that is running in a thread of its own.

Invariant: `wait` and `stop` go by an event that the thread sets when it is done, whatever happens to it. `Thread.join`
would not do: on Python 3.11 a join that Ctrl-C interrupts makes the thread count as ended while it still runs.
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

    If it was started without a sink, its results are here: `to_arrow()`, `to_pandas()`, or one by one with
    `for batch in run`. As a context, `with query.start() as run:`, it is stopped at the end.
    """

    def __init__(self, runner: Runner, settings: Settings, inside: Inside, kept: KeptSink | None = None) -> None:
        """`inside` knows the threads that run functions of the user for this run; `kept` has the results, if no sink
        takes them."""
        self.settings = settings
        self._runner, self._inside, self._kept = runner, inside, kept
        self._stop, self._over = threading.Event(), threading.Event()
        self._summary: Summary | None = None
        self._error: EddylineError | None = None
        threading.Thread(target=inside.calling(self._work), name="eddyline", daemon=True).start()

    def stop(self) -> None:
        """Ends the run after the batch in hand, and waits for that; not for a stream whose rows have not come. A sink
        may ask for it too, and is not waited for."""
        self._stop.set()
        if self._kept is not None:
            self._kept.release()
        if not self._inside.here():
            self._over.wait()

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Waits for the end (at most `timeout` seconds); what the run did, None if it is still running. Raises its
        error. Results that nobody reads meanwhile are kept in memory."""
        if self._inside.here() and not self._over.is_set():
            raise SettingError("a run cannot be waited for by its own sink or function: that would never end")
        with contextlib.nullcontext() if self._kept is None else self._kept.whole():
            self._over.wait(timeout)
        if self._error is not None:
            raise self._error
        return self._summary

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The results as they come, in record batches, each of which is given once. The run waits while about 64 MB of
        them are not read. Raises the error of the run after the batches that were before it."""
        kept = self._results()
        while (batch := kept.next()) is not None:
            yield batch
        self.wait()

    def to_arrow(self) -> pa.Table:
        """Waits for the end; the results as a table. Raises the error of the run, and SettingError if an iteration has
        taken results already."""
        kept = self._results()
        self.wait()
        if kept.taken:
            raise SettingError("an iteration has taken results of this run, and gives each once; keep its batches")
        return pa.Table.from_batches(kept.unread(), self._runner.reporter.schema)

    def to_pandas(self) -> pd.DataFrame:
        """As `to_arrow`, as a DataFrame of pandas."""
        try:
            import pandas  # noqa: F401
        except ModuleNotFoundError:
            raise SettingError("to_pandas needs pandas; type: pip install 'pandas>=2.2,<3', or use to_arrow") from None
        return self.to_arrow().to_pandas()

    def progress(self) -> Progress:
        """Where the run is now."""
        return self._runner.reporter.progress()

    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._runner.reporter.decisions

    def explain(self) -> str:
        """The plan and what was measured on it so far, in text."""
        return self._runner.reporter.explain()

    def exception(self) -> EddylineError | None:
        """What the run failed with, if it did."""
        return self._error

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *args: object) -> None:
        self.stop()

    @property
    def state(self) -> str:
        """running, stopping, stopped, done or failed. A run that keeps its results stays running while about 64 MB of
        them are not read: to wait for its end, call `wait`, `to_arrow` or `to_pandas`, or iterate over it."""
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
