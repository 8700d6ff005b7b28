"""The events of a record in the pace of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from eddyline.runtime.recording.feed import Event

_NAP = 0.1
"""The longest that a stop is not noticed."""


def paced(
    events: Iterable[Event],
    speed: float,
    stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:
    """Give each event when it is due, `speed` times as fast as it came; ends early if `stop()` is true."""
    begin = clock()
    for event in events:
        while (left := event["t"] / speed - (clock() - begin)) > 0:
            if stop():
                return
            sleep(min(left, _NAP))
        if stop():
            return
        yield event
