"""`eddyline demo`: its story is what happened, its two sides take turns, and its script runs as it was written."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from eddyline.cli import demo_job
from eddyline.cli.demo import _TwoSides
from eddyline.cli.demo_job import KEYS, LEAST_ROWS, RATE, START, STREAMS, batch_rows, phases, script
from eddyline.cli.demo_sides import BatchWork, JoinWork, Side, event_time
from eddyline.cli.demo_story import Compared, after_drift, stories
from eddyline.cli.demo_text import report, verdict
from eddyline.cli.demo_turns import Turns
from eddyline.cli.display import Display
from eddyline.cli.main import main
from eddyline.errors import JobError
from eddyline.routing.decisions import Decision
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner, Runner
from eddyline.settings import Settings
from lab.bench.demo import contradictions

PNG = b"\x89PNG"


@pytest.mark.long
def test_on_the_local_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str], in_tmp: Path) -> None:
    arguments = ["--seconds", "12", "--engine", "local", "--out", str(tmp_path / "new"), "--json", "--live"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path))
        for name, less in ("RATE", RATE // 4), ("KEYS", KEYS // 4), ("LEAST_ROWS", LEAST_ROWS // 4):
            patch.setattr(demo_job, name, less)
        assert main(["demo", *arguments]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.err and "\n-- 0 to 4 s of event time: hardly any order has a partner\n" in said.err
    summary: dict[str, Any] = json.loads(said.out.splitlines()[-1])
    assert summary["rows_in"] == (12 * 4 + 4) * RATE // 4  # payments come twice as often in the last third
    demo = summary["demo"]
    assert demo["after_drift"]["times"] >= 2.0
    assert [phase["rare"] for phase in demo["phases"]] == ["orders", "alarms", "parcels"]
    assert demo["phases"][-1]["first"]["stream"] == "parcels"
    assert contradictions(said.out, demo, slots=1) == []
    assert f"Both orders gave the same {summary['rows_out']:,} results" in said.out
    assert (tmp_path / "new" / "eddyline-demo.png").read_bytes().startswith(PNG)
    assert (tmp_path / "new" / "eddyline-demo.sql").read_text() in said.out
    assert not list(in_tmp.glob("eddyline-demo*")) and not list(tmp_path.glob("eddyline-demo-*"))


def decided(slot: int | None, before: str, after: str, subject: str = "p") -> Decision:
    expected = {"us per tuple": 0.25, "us per tuple before": 4.0}
    return Decision("reroute", 1, "", "", {}, expected, slot, subject=subject, before=tuple(before), after=tuple(after))


def sides() -> tuple[Side, Side]:
    """Twelve batches of half a second. From 2 s on the fixed order takes ten times the CPU; the adaptive one changes
    once in the batch to 3 s and once, back, in one that ends in the next phase and lies mostly before it."""
    adaptive, fixed = Side(), Side()
    for number in range(12):
        begin, end, late = number / 2, number / 2 + 0.5, number >= 4
        changes: tuple[Decision, ...] = ()
        first = Counter(orders=100)
        if number == 5:
            changes = decided(1, "osa", "aos"), decided(1, "ops", "spo", "a"), decided(1, "aos", "aso")
            first = Counter(orders=50, alarms=50)
        elif number > 5:
            first = Counter(orders=1, alarms=99)
        if number == 7:
            end, changes = 4.1, (decided(0, "osa", "aos"),)
        begin = 4.1 if number == 8 else begin
        adaptive.batches.append(BatchWork(begin, end, JoinWork(1000, 0.5, 0.001, 10), first, changes))
        fixed.batches.append(
            BatchWork(begin, end, JoinWork(1000, 1.0, 0.010 if late else 0.001, 99), Counter(orders=100))
        )
    return adaptive, fixed


def test_a_story_is_made_of_decisions_and_counts() -> None:
    one, two, three = stories(6, *sides())
    assert (one.changes, one.first, one.compared.times) == ((), ("orders", 1.0), 1.0)
    assert [(batch.end, d.slot, d.after[0]) for batch, d in two.changes] == [(3.0, 1, "a"), (4.1, 0, "a")]
    assert two.first == three.first == ("alarms", 0.99) and three.changes == ()
    assert len(one.compared.pairs) == 3  # the first batch compiles, and is not compared
    drifted = after_drift(6, *sides())
    assert drifted.times == pytest.approx(10.0) and len(drifted.pairs) == 8 and drifted.is_clear
    assert (drifted.adaptive.rows, drifted.fixed.tuples, drifted.fixed.rate) == (8000, 8 * 99, 1000)


def test_the_text_and_the_data_are_of_one_story() -> None:
    told, drifted = stories(6, *sides()), after_drift(6, *sides())
    text = report(told, drifted, 1234, Path("x.sql"), Path("x.png"))
    assert "    by 3.0 s in slot 1 they ask alarms, orders, parcels, not orders, parcels, alarms" in text
    assert "expected: 0.25 us of CPU a row in place of 4" in text
    assert "    no change: 100 % of payments asked orders first" in text
    assert text.count("    in the end 99 % of payments asked alarms first") == 1
    assert "the fixed order took 10.0 times the CPU seconds" in text and "same 1,234 results" in text
    assert "The picture: x.png" in text and "./run eddyline run x.sql --live" in text
    assert contradictions(text, {"phases": [story.as_dict() for story in told]}, slots=2) == []
    assert json.loads(json.dumps(drifted.as_dict()))["half"] == pytest.approx([10.0, 10.0])


def test_noise_is_said_plainly() -> None:
    noisy = Compared(JoinWork(10, 1.0, 1.0), JoinWork(10, 1.0, 1.2), (0.5, 0.8, 1.2, 2.0, 3.0))
    assert noisy.half == (0.8, 2.0) and not noisy.is_clear
    assert verdict(noisy, 4)[0].startswith("The noise is larger than the difference: after the data changed at 4 s")
    less = Compared(JoinWork(10, 1.0, 2.0), JoinWork(10, 1.0, 1.0), (0.5, 0.5))
    assert less.is_clear and "took 0.5 times the CPU" in verdict(less, 4)[0]
    nothing = Compared(JoinWork(), JoinWork(), ())
    assert (nothing.times, nothing.half, nothing.is_clear) == (0.0, (0.0, 0.0), False)


def test_contradictions_are_found() -> None:
    told, drifted = stories(6, *sides()), after_drift(6, *sides())
    text = report(told, drifted, 1, Path("x.sql"), None).replace(
        "99 % of payments asked alarms", "99 % of payments asked orders"
    )
    assert len(contradictions(text, {"phases": [story.as_dict() for story in told]}, slots=2)) == 2


# Turns


def test_two_runs_take_turns_and_the_clock_of_the_one_that_waits_stands_still() -> None:
    turns, order, clocks = Turns(lambda: False), list[int](), list[float]()

    def run(number: int, batches: int) -> None:
        turns.wait(number)
        begin = turns.seconds(number)
        for _ in range(batches):
            order.append(number)
            time.sleep(0.05 * number)
            turns.pass_on(number)
        clocks.append(turns.seconds(number) - begin)
        turns.leave()

    other, begin = threading.Thread(target=run, args=(1, 5)), time.perf_counter()
    other.start()
    run(0, 3)
    passed = time.perf_counter() - begin
    other.join()
    assert order == [0, 1, 0, 1, 0, 1, 1, 1]
    assert clocks[0] <= passed - 3 * 0.05 and clocks[1] >= 5 * 0.05


def test_nobody_waits_once_the_runs_are_to_stop() -> None:
    stopping = threading.Event()
    turns = Turns(stopping.is_set)
    waiting = threading.Thread(target=turns.wait, args=(1,))
    waiting.start()
    stopping.set()
    waiting.join(5)
    assert not waiting.is_alive()


@pytest.mark.parametrize("fails", ["auto", "fixed"])
def test_if_one_side_fails_the_other_stops(fails: str, tmp_path: Path) -> None:
    def make(text: str, settings: Settings, clock: Callable[[], float]) -> AbstractContextManager[Runner]:
        if settings.router == fails:
            raise JobError("no room")
        return nullcontext(LocalRunner(prepare(text), settings, clock=clock))

    options = argparse.Namespace(seconds=6, engine="local", live=True, record=None)
    two = _TwoSides(options, str(tmp_path), make, threading.Event(), Display(), None)
    with pytest.raises(JobError, match="no room"):
        two.run()
    assert all(len(side.batches) <= 1 for side in two.sides)


# The job


def test_seconds_must_be_enough(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("11", "-1", "many"):
        assert main(["demo", "--seconds", wrong]) == 2
        assert f"'{wrong}' is not a whole number of at least 12" in capsys.readouterr().err


def test_phases_cover_the_time() -> None:
    for seconds in (12, 13, 20, 60, 61):
        ends = [(p.begin, p.end) for p in phases(seconds)]
        assert ends[0][0] == 0 and ends[-1][1] == seconds and ends[0][1] == ends[1][0] and ends[1][1] == ends[2][0]
        assert {p.rare for p in phases(seconds)} < set(STREAMS)
    assert script(12, "out").count("CREATE STREAM") == 4
    assert batch_rows(12) < RATE * 4 * 4 / 6 and batch_rows(36) == RATE * (4 * 36 + 12) // 36
    assert event_time(Progress(watermark_us=START + 1_500_000)) == 1.5 and event_time(Progress()) == 0.0
