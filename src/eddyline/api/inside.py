"""The threads in which a run calls functions of the user. They must not wait for the run, because the run waits for
them. On Spark, it is the thread in which Spark calls back for each batch."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Inside:
    """The threads of one run.

    >>> inside = Inside()
    >>> inside.here(), inside.calling(inside.here)()
    (False, True)
    """

    def __init__(self) -> None:
        self._depth = threading.local()

    def here(self) -> bool:
        """Whether the current thread is inside such a function."""
        return getattr(self._depth, "now", 0) > 0

    def calling(self, function: Callable[P, R]) -> Callable[P, R]:
        """Wrap a function so that its thread is known while it runs."""

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            before = getattr(self._depth, "now", 0)
            self._depth.now = before + 1
            try:
                return function(*args, **kwargs)
            finally:
                self._depth.now = before

        return called
