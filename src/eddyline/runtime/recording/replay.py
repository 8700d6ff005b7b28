"""Gives the events of a record: marked as a replay, and at the pace of the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.words import named

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


def as_replay(events: Iterable[Event]) -> Iterator[Event]:
    """The events, of which the first says that this is a replay. Reasons get names of sources: old records have their
    numbers.

    >>> run = {"type": "run", "sources": [{"alias": "a"}]}
    >>> [*as_replay([run, {"type": "decision", "kind": "plan", "why": "rate 0 1 -> 2"}])][1]["why"]
    'rate of a 1 -> 2'
    """
    aliases: list[str] = []
    for event in events:
        if event["type"] == "run":
            aliases = [source["alias"] for source in event.get("sources", ())]
            yield event | {"replay": True}
        elif event.get("kind") == "plan":
            yield event | {"why": named(event["why"], aliases)}
        else:
            yield event
