"""Stops asking a table that does not answer, and looks now and then whether it does again."""

from __future__ import annotations


class CircuitBreaker:
    """Closed: tries are allowed. After `failures` in a row it opens: no try is allowed for `pause` seconds. Then it is
    half open: one try, the probe, is allowed. The probe closes it, or opens it for another pause.

    >>> breaker = CircuitBreaker(failures=2, pause=5)
    >>> breaker.failed(now=0), breaker.failed(now=1), breaker.wait(now=2)
    (None, None, 4)
    >>> breaker.wait(now=6), breaker.wait(now=6)
    (0.0, 5)
    """

    def __init__(self, failures: int, pause: float) -> None:
        self._most, self._pause = failures, pause
        self._in_a_row = 0
        self._next = 0.0
        self.open_since: float | None = None
        """When it opened; half open counts as open."""
        self.reason = ""
        """Why the last try failed."""

    def wait(self, now: float) -> float:
        """Seconds until the next try is allowed. With 0 the caller must make the try, and say how it went: it may be
        the probe."""
        if self.open_since is None:
            return 0.0
        if now < self._next:
            return self._next - now
        self._next = now + self._pause
        return 0.0

    def succeeded(self) -> None:
        """A try was answered."""
        self._in_a_row, self.open_since = 0, None

    def failed(self, now: float, reason: str = "") -> None:
        """A try was not answered."""
        self._in_a_row += 1
        self.reason = reason
        if self._in_a_row >= self._most:
            self.open_since = now if self.open_since is None else self.open_since
            self._next = now + self._pause
