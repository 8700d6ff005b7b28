"""The recorder on real runs: every kind of event, every decision once, nothing lost silently, and its clock."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eddyline.engine.standing import Standing
from eddyline.errors import EddylineError
from eddyline.routing.decisions import Decision
from eddyline.routing.report import Report
from eddyline.runtime.recording.feed import Event, EventFeed
from eddyline.runtime.recording.files import read
from eddyline.runtime.recording.recorded import recorder_of, run_recorded
from eddyline.runtime.recording.recorder import HEARTBEAT, LOOK, Recorder
from eddyline.runtime.reporting.summary import Progress, Summary
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from eddyline.testing.clock import ManualClock
from tests.support.events import RUN
from tests.support.jobs import bound

_STREAM = (
    "CREATE STREAM {} (ts TIMESTAMP, k BIGINT, v BIGINT) USING generate"
    " OPTIONS (rows 2000, rate 1000, k.domain '0..499') TIMESTAMP BY ts;\n"
)
SCRIPT = f"""{"".join(map(_STREAM.format, "abc"))}
SELECT a.v -- a comment; with a semicolon
FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND], c [RANGE 100 MILLISECONDS] WHERE a.k = b.k AND b.k = c.k AND a.v < b.v
"""


class Ticking:
    """A clock that goes on with each reading, so that every batch is looked at and sampled."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def recorded(path: Path | None = None, feed: EventFeed | None = None, **given: object) -> Summary:
    """Run the script with a recorder."""
    settings = from_mapping({"batch_rows": 500, **given})
    runner = LocalRunner(prepare(SCRIPT, sink=CallbackSink(lambda rows: None)), settings)
    recorder = recorder_of(runner, SCRIPT, settings, "local", path, feed, clock=Ticking())
    return run_recorded(runner, recorder, lambda: False, lambda progress: None)


def by_type(events: list[Event]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event["type"], []).append(event)
    return found


@pytest.mark.parametrize("given", [{}, {"slots": 2}, {"slots": 2, "memory": "35KB", "groups": 16}])
def test_a_run_is_recorded(tmp_path: Path, given: dict[str, Any]) -> None:
    feed = EventFeed()
    summary = recorded(tmp_path / "r", feed, prefer="a.v > 0", **given)
    events = [*read(tmp_path / "r")]
    assert [event for _, event in feed.since()][:-1] == events[:-1], "the feed has what the file has"
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    found = by_type(events)
    (run,), (end,) = found["run"], found["end"]
    assert events[0] is run and events[-1] is end and end["status"] == "done" and end["error"] is None
    assert (
        run["query"].startswith("SELECT a.v --")
        and run["query"].endswith("a.v < b.v")
        and run["slots"] == given.get("slots", 1)
    )
    assert [(s["alias"], s["window"]) for s in run["sources"]] == [
        ("a", "RANGE 1 second"),
        ("b", "RANGE 1 second"),
        ("c", "RANGE 100 milliseconds"),
    ]
    assert {(tuple(e["between"]), e["kind"]) for e in run["edges"]} == {
        ((0, 1), "equality"),
        ((1, 2), "equality"),
        ((0, 1), "other"),
    }
    assert run["settings"]["batch_rows"] == "500" and run["settings"]["memory"] == (
        "35000" if "memory" in given else "none"
    )
    assert end["summary"]["rows_in"] == 6000 == summary.rows_in and "steps" not in end["summary"]

    decided = Counter(d["kind"].replace("route", "reroute") for d in found["decision"])
    assert decided == summary.decisions and decided["preference"] == given.get("slots", 1)
    assert [d["id"] for d in found["decision"]] == [*range(1, 1 + sum(decided.values()))]
    preferences = [d for d in found["decision"] if d["kind"] == "preference"]
    assert sorted({d["slot"] for d in preferences}, key=str) == ([0, 1] if "slots" in given else [None])
    assert ("spill" in decided) == ("memory" in given)

    samples = found["sample"]
    assert len(samples) > 10 and samples[-1]["rows_in"] == 6000 and samples[-1]["rows_out"] == summary.rows_out
    assert sum(r["rows"] for s in samples for r in s["routes"]) == summary.rows_in if "memory" not in given else True
    counted: Counter[str] = Counter()
    for sample in samples:
        for step in sample["steps"]:
            counted[step["at"], step["step"]] += step["tuples"]
    assert counted == {(s["at"], s["step"]): s["tuples"] for s in summary.steps if s["tuples"]}, "differences add up"
    assert {slot["slot"] for s in samples[:-1] for slot in s["slots"]} == set(range(given.get("slots", 1)))
    assert all(0 <= slot["busy"] <= 1 for s in samples[1:] for slot in s["slots"] if slot["busy"] is not None)
    assert samples[3]["streams"]["a"]["rows"] > 0 and samples[3]["streams"]["a"]["watermark_us"] is not None
    assert any("groups" in s for s in samples) == ("memory" in given)
    for groups in (s["groups"] for s in samples if "groups" in s):
        assert {len(column) for column in groups.values()} == {len(groups["group"])} and {*groups["slot"]} <= {0, 1}
        assert 0 < len(groups["group"]) <= 2 * given["groups"] and {*groups["group"]} <= set(range(given["groups"]))
    spans = samples[-1]["routes"][0]["spans"]
    assert spans is None or (spans[0] == [0] and spans[-1] == [0, 1, 2])


def test_streams_that_become_idle_are_decisions(tmp_path: Path) -> None:
    feed = EventFeed()
    script = SCRIPT.replace("rows 2000", "rows 100", 1)
    settings = from_mapping({"batch_rows": 50, "idle_timeout": 1e-9})
    runner = LocalRunner(prepare(script, sink=CallbackSink(lambda rows: None)), settings)
    summary = run_recorded(
        runner, recorder_of(runner, script, settings, "local", None, feed), lambda: False, lambda p: None
    )
    idle = [event for _, event in feed.since() if event.get("kind") == "idle"]
    assert len(idle) == summary.decisions.get("idle", 0)


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    def fail(rows: object) -> None:
        raise EddylineError("the sink is full")

    settings = from_mapping({"batch_rows": 500})
    runner = LocalRunner(prepare(SCRIPT, sink=CallbackSink(fail)), settings)
    recorder = recorder_of(runner, SCRIPT, settings, "local", tmp_path / "r")
    with pytest.raises(EddylineError):
        run_recorded(runner, recorder, lambda: False, lambda progress: None)
    *_, end = read(tmp_path / "r")
    assert end["status"] == "failed" and end["error"] == "the sink is full"


class Scripted:
    """A reporter whose decisions a test makes."""

    def __init__(self) -> None:
        self.query = bound("SELECT a.x FROM a", a="x")
        self.lateness: dict[str, int] = {}
        self.memory_limit, self.standing = None, Standing()
        self.decisions: list[Decision] = []
        self.taken = 0
        self.reports = 0

    def add(self, number: int, kept: int) -> None:
        """So many decisions are taken, of which the report keeps the newest."""
        self.taken += number
        new = [Decision("reroute", n, f"decision {n}", "") for n in range(self.taken - number, self.taken)]
        self.decisions = [*self.decisions, *new][-kept:]

    def report(self) -> Report:
        self.reports += 1
        return Report(self.query, 0.0, (0,), {}, (), {"reroute": self.taken}, tuple(self.decisions))

    def progress(self) -> Progress:
        return Progress()


def test_decisions_that_a_report_does_not_keep_are_counted() -> None:
    reporter, feed = Scripted(), EventFeed()
    recorder = Recorder(reporter, RUN, feed, clock=Ticking())  # type: ignore[arg-type]
    for number, kept in ((3, 10), (0, 10), (30, 10), (10, 10), (11, 10)):
        reporter.add(number, kept)
        recorder(Progress(seconds=1.0))
    events = [event for _, event in feed.since()]
    assert [e["at"] for e in events if e["type"] == "decision"] == [0, 1, 2, *range(23, 43), *range(44, 54)]
    assert [e["text"].partition(" decisions")[0] for e in events if e["type"] == "note"] == ["20 more", "1 more"]


def test_small_batches_do_not_cost_a_report_each() -> None:
    reporter, clock = Scripted(), ManualClock()
    recorder = Recorder(reporter, RUN, EventFeed(), clock=clock)  # type: ignore[arg-type]
    for _ in range(10_000):
        clock.advance(0.001)
        recorder(Progress(seconds=clock()))
    assert reporter.reports <= 10 / LOOK + 1


def test_a_silent_run_has_a_heartbeat() -> None:
    reporter, clock, feed = Scripted(), ManualClock(), EventFeed()
    recorder = Recorder(reporter, RUN, feed, clock=clock)  # type: ignore[arg-type]
    recorder(Progress(seconds=2.0))
    for _ in range(300):
        clock.advance(0.1)
        recorder.idle()
    times = [event["t"] for _, event in feed.since() if event["type"] == "sample"]
    assert times == [2.0, *(pytest.approx(2.0 + n * HEARTBEAT, abs=0.2 * n) for n in range(1, 6))]


def test_reasons_of_plans_have_names_of_sources() -> None:
    reporter, feed = Scripted(), EventFeed()
    reporter.taken, why = 1, "an interval has passed; rate 0 5 -> 7; 0.2 -> 0.1 of a core, 1 MB -> 2 MB"
    reporter.decisions = [Decision("plan", 0, "(a) stays", why)]
    Recorder(reporter, RUN, feed, clock=Ticking())(Progress(seconds=1.0))  # type: ignore[arg-type]
    (told,) = (event["why"] for _, event in feed.since() if event["type"] == "decision")
    assert told == ("a regular check found that the data changed: rate of a 5 -> 7; 0.2 -> 0.1 of a core, 1 MB -> 2 MB")
