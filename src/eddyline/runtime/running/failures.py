"""Turns any exception into an error that tells the user, in one line, whose fault it was."""

from __future__ import annotations

import errno

import pyarrow as pa

from eddyline.errors import EddylineError, InternalError, JobError, said
from eddyline.os_errors import limit_of, number_of, why


def told(error: BaseException) -> EddylineError:
    """The error to raise in place of another exception.

    >>> told(OSError(28, "No space left on device"))
    JobError('cannot read or write data: No space left on device')
    """
    if isinstance(error, EddylineError):
        return error
    if isinstance(error, MemoryError):  # of Python, NumPy or Arrow
        limit = limit_of(errno.ENOMEM)
        return JobError(
            f"out of memory{f': {limit}' if limit else ''}; a smaller window or the setting memory keeps state within"
            " bounds"
        )
    if isinstance(error, pa.ArrowCapacityError):
        return JobError(f"a value or a batch is too large ({said(error)}); a smaller batch_rows may help")
    if isinstance(error, OSError | ImportError) and number_of(error) is None and (limit := limit_of(errno.ENOMEM)):
        return JobError(f"a library cannot be loaded: {limit}")
    if isinstance(error, OSError):
        names = [str(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
        return JobError(f"cannot read or write {' -> '.join(names) or 'data'}: {why(error)}")
    return InternalError(said(error))
