"""Turns any exception into an error that tells the user, in one line, whose fault it was."""

from __future__ import annotations

import pyarrow as pa

from eddyline.errors import EddylineError, InternalError, JobError, said


def told(error: BaseException) -> EddylineError:
    """The error to raise in place of another exception.

    >>> told(OSError(28, "No space left on device"))
    JobError('cannot read or write data: No space left on device')
    """
    if isinstance(error, EddylineError):
        return error
    if isinstance(error, MemoryError):  # of Python, NumPy or Arrow
        return JobError("out of memory; a smaller window or the setting memory keeps state within bounds")
    if isinstance(error, pa.ArrowCapacityError):
        return JobError(f"a value or a batch is too large ({said(error)}); a smaller batch_rows may help")
    if isinstance(error, OSError):
        return JobError(f"cannot read or write {error.filename or 'data'}: {error.strerror or said(error)}")
    return InternalError(said(error))
