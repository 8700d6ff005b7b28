"""A Python callable as a sink: it is called with each record batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from eddyline.errors import EddylineError, JobError


class CallbackSink:
    """Calls a function for each batch of rows; what the function raises ends the job."""

    def __init__(self, function: Callable[[pa.RecordBatch], object]) -> None:
        self._function = function

    def check(self) -> None:
        """Nothing can be wrong."""

    def open(self) -> None:
        """Nothing to make."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Call the function with the rows; JobError if it raises."""
        try:
            self._function(batch)
        except EddylineError:
            raise
        except Exception as error:
            raise JobError(f"the sink raised {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Nothing to complete."""

    def abandon(self) -> None:
        """Nothing to undo."""
