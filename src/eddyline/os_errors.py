"""Errors of the operating system in words: the reason without the name that Arrow gives it, and the limit of this
process that was reached, if there is one.
"""

from __future__ import annotations

import errno
import os
import re
import resource

from eddyline.printable import printable
from eddyline.setting_kinds import size_text

_LIMITS = {
    errno.EFBIG: (resource.RLIMIT_FSIZE, "a process may write files of at most {} (ulimit -f)"),
    errno.EMFILE: (resource.RLIMIT_NOFILE, "a process may have {} files and connections open (ulimit -n)"),
    errno.ENOMEM: (resource.RLIMIT_AS, "a process may have at most {} of memory and mapped files (ulimit -v)"),
}
"""The limit behind a number of an error, and what it means."""


def why(error: BaseException) -> str:
    """The reason of an error in one line, to follow the name of the file in a message: of an error of the system its
    text, with the limit of the process that was reached; else the first line of a library's message.

    >>> why(OSError("[Errno 28] Error writing bytes to file. Detail: [errno 28] No space left on device"))
    'No space left on device'
    >>> why(ValueError("no magic bytes. \\n at 4"))
    'no magic bytes'
    """
    number = number_of(error)
    if number is None:
        return printable((str(error).splitlines() or [type(error).__name__])[0].rstrip(". "))
    limit = limit_of(number)
    return f"{os.strerror(number)}: {limit}" if limit else os.strerror(number)


def limit_of(number: int) -> str:
    """The limit of this process behind the number of an error; empty if there is none."""
    if number not in _LIMITS:
        return ""
    kind, text = _LIMITS[number]
    most = resource.getrlimit(kind)[0]
    if most == resource.RLIM_INFINITY:
        return ""
    return text.format(most if kind == resource.RLIMIT_NOFILE else size_text(most))


def number_of(error: BaseException) -> int | None:
    """The system's number of an error, which Arrow has only in its text; None for another error."""
    if found := re.search(r"\[errno (\d+)\]", str(error)):
        return int(found[1])
    return error.errno if isinstance(error, OSError) and error.errno in errno.errorcode else None


def is_full(error: BaseException) -> bool:
    """Whether the disk, or the share of it that the user may have, is full."""
    return number_of(error) in (errno.ENOSPC, errno.EDQUOT)


def is_of_system(error: BaseException) -> bool:
    """Whether the system failed, and not the content of a file."""
    return number_of(error) is not None
