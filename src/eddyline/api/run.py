"""A query that is running in a thread of its own.

Invariant: `wait` and `stop` go by an event that the thread sets last, whatever happens to it. `Thread.join` would not
do: on Python 3.11 a join that Ctrl-C interrupts makes the thread count as ended while it still runs.
"""

from __future__ import annotations

import threading

from eddyline.api.inside import Inside
from eddyline.errors import EddylineError, SettingError
from eddyline.runtime.failures import told
from eddyline.runtime.runner import Runner
from eddyline.runtime.summary import Progress, Summary
from eddyline.settings import Settings


class Run:
    """A query that is running, or has ended; made by `start` of `el.query`."""

    def __init__(self, runner: Runner, settings: Settings, inside: Inside) -> None:
        """`inside` knows the threads that run functions of the user for this run."""
        self.settings = settings
        self._runner, self._inside = runner, inside
        self._stop, self._over = threading.Event(), threading.Event()
        self._summary: Summary | None = None
        self._error: EddylineError | None = None
        threading.Thread(target=inside.calling(self._work), name="eddyline", daemon=True).start()

    def stop(self) -> None:
        """Ends the run after the batch in hand, and waits for that; not for a stream whose rows have not come. A sink
        may ask for it too, and is not waited for."""
        self._stop.set()
        if not self._inside.here():
            self._over.wait()

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Waits for the end (at most `timeout` seconds); what the run did, None if it is still running. Raises its
        error."""
        if self._inside.here() and not self._over.is_set():
            raise SettingError("a run cannot be waited for by its own sink or function: that would never end")
        self._over.wait(timeout)
        if self._error is not None:
            raise self._error
        return self._summary

    def progress(self) -> Progress:
        """Where the run is now."""
        return self._runner.progress()

    def decisions(self) -> dict[str, int]:
        """Decisions taken so far, by kind."""
        return self._runner.decisions

    def explain(self) -> str:
        """The plan and what was measured on it so far, in text."""
        return self._runner.explain()

    def exception(self) -> EddylineError | None:
        """What the run failed with, if it did."""
        return self._error

    def _work(self) -> None:
        try:
            self._summary = self._runner.run(self._stop.is_set, lambda progress: None)
        except BaseException as error:
            self._error = told(error)
            if self._error is not error:
                self._error.__cause__ = error
        finally:
            self._over.set()
