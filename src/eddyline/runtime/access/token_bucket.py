"""Limits the requests per second to a table."""

from __future__ import annotations


class TokenBucket:
    """Allows `rate` requests per second, and after a quiet time up to a second's worth at once.

    A request takes its token when it asks how long to wait, so waiting requests are served in their order.

    >>> bucket = TokenBucket(rate=2, now=0)
    >>> [bucket.wait(now=0) for _ in range(4)], bucket.wait(now=2)
    ([0.0, 0.0, 0.5, 1.0], 0.0)
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate, self._most = rate, max(1.0, rate)
        self._tokens, self._at = self._most, now

    def wait(self, now: float) -> float:
        """Take a token; seconds until the request may be sent."""
        self._tokens = min(self._most, self._tokens + (now - self._at) * self._rate) - 1
        self._at = now
        return max(0.0, -self._tokens / self._rate)
