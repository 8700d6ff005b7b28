"""`eddyline replay`: a recorded run as if it were live, on the dashboard or in lines."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator

from eddyline.cli.stopping import interrupts
from eddyline.cli.streams import say
from eddyline.cli.watching import dashboard
from eddyline.routing.report import number
from eddyline.runtime.recording.feed import Event
from eddyline.runtime.recording.files import read, understood
from eddyline.runtime.recording.replay import as_replay, paced
from eddyline.runtime.recording.words import seconds, size


def command(options: argparse.Namespace) -> int:
    """Replay the record; on the dashboard it stays after its end, until Ctrl-C."""
    events = read(options.file)
    with understood(options.file), interrupts() as stop:
        if options.text:
            for line in lines(paced(events, options.speed, stop.is_set)):
                say(line)
            return stop.status if stop.is_set() else 0
        options.dashboard = options.dashboard or ""
        with dashboard(options) as feed:
            assert feed is not None
            for event in paced(as_replay(events), options.speed, stop.is_set):
                feed.publish(event)
            while not stop.is_set():
                time.sleep(0.1)
    return stop.status


def lines(events: Iterable[Event]) -> Iterator[str]:
    """A line for each event, as `--live` writes without a terminal."""
    then, had = 0.0, 0
    for event in events:
        kind, at = event["type"], seconds(event["t"])
        if kind == "run":
            slots = f"{event['slots']} slot{'s' * (event['slots'] != 1)}"
            yield f"{event['engine']} engine, {slots}: {' '.join(event['query'].split())}"
        elif kind == "sample":
            took = event["t"] - then
            rate = f" | {number((event['rows_in'] - had) / took)} rows/s" if took > 0 else ""
            then, had = event["t"], event["rows_in"]
            state = f"state {event['state_rows']:,} rows, {size(event['memory_bytes'])}"
            yield f"{at}: {had:,} rows in{rate} | {event['rows_out']:,} out | {state} | {event['tree']}"
        elif kind == "decision":
            yield f"{at}: {event['kind']}: {event['what']}{'; ' if event['why'] else ''}{event['why']}"
        elif kind == "outcome":
            verdict = {True: "paid", False: "did not pay", None: "cannot be told"}[event["paid"]]
            yield f"{at}: outcome of {event['of']}: {verdict}: {event['what']}"
        elif kind == "note":
            yield f"{at}: {event['level']}: {event['text']}"
        elif kind == "end":
            yield f"{at}: {event['status']}{': ' if event['error'] else ''}{event['error'] or ''}"
