"""The feed: numbers, late readers, bounded memory, and what thinning keeps."""

from __future__ import annotations

import threading

from eddyline.runtime.recording.feed import EventFeed
from tests.support.events import RUN, sample


def test_a_reader_gets_each_event_once_in_order() -> None:
    feed, known, seen = EventFeed(), 0, list[int]()
    for t in range(20):
        feed.publish(RUN if t == 0 else sample(t, tuples=1))
        if t % 3 == 0:
            new = feed.since(known)
            known = new[-1][0]
            seen += [int(event["t"]) for _, event in new]
    seen += [int(event["t"]) for _, event in feed.since(known)]
    assert seen == list(range(20))


def test_a_late_reader_gets_the_whole_run_thinned() -> None:
    feed = EventFeed(samples=64, others=32)
    feed.publish(RUN)
    for t in range(1, 5001):
        feed.publish(sample(t, tuples=1))
    events = [event for _, event in feed.since()]
    assert events[0] == RUN and len(events) <= 66
    assert [e["t"] for e in events] == sorted(e["t"] for e in events) and events[-1]["t"] == 5000
    assert sum(step["tuples"] for e in events[1:] for step in e["steps"]) == 5000, "merging loses no count"
    assert [e["t"] for e in events[-16:]] == [*range(4985, 5001)], "the newest are as they came"


def test_the_oldest_of_the_other_events_are_dropped_and_that_is_said() -> None:
    feed = EventFeed(samples=8, others=64)
    feed.publish(RUN)
    for t in range(1, 1001):
        feed.publish({"type": "decision", "t": float(t), "id": t})
    events = [event for _, event in feed.since()]
    (note,) = (e for e in events if e["type"] == "note")
    kept = [e["id"] for e in events if e["type"] == "decision"]
    assert events[1] is note and len(events) <= 66 and kept == [*range(1001 - len(kept), 1001)]
    assert note["text"] == f"{1000 - len(kept)} earlier events are in the record only"


def test_any_thread_may_read_while_another_publishes() -> None:
    feed, wrong = EventFeed(samples=64), list[str]()
    feed.publish(RUN)

    def read() -> None:
        known = 0
        while not feed.closed:
            for number, _ in feed.since(known):
                if number <= known:
                    wrong.append(f"{number} after {known}")
                known = number

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for t in range(1, 2000):
        feed.publish(sample(t, tuples=1))
    feed.publish({"type": "end", "t": 2000.0})
    for reader in readers:
        reader.join()
    assert wrong == []
