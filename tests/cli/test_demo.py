"""`eddyline demo`: what it says of routes and times is what happened, and its script runs as it is printed."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from eddyline.cli.demo import _Mark, _Ran
from eddyline.cli.main import main
from eddyline.routing.decisions import Decision
from eddyline.runtime.summary import Summary


@pytest.fixture(scope="module")
def told() -> str:
    """What the demo prints, on a few seconds of event time."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["demo", "--seconds", "15", "--json"]) == 0
    return out.getvalue()


def test_the_summary_is_last(told: str) -> None:
    summary = json.loads(told.splitlines()[-1])
    assert summary["rows_in"] == 15 * 41000
    assert summary["decisions"]["reroute"] == len(summary["decisions_log"]) > 0
    assert f"the router decided anew {len(summary['decisions_log'])} times" in told


def test_the_route_at_the_end_of_each_phase_is_told(told: str) -> None:
    """Which one it is depends on what was measured."""
    routes = re.findall(r"so payments went (p -> .*)", told)
    assert len(routes) == 3
    assert all("odd_amount" in route and "odd_device" in route for route in routes)


def test_every_decision_is_told_or_counted(told: str) -> None:
    summary = json.loads(told.splitlines()[-1])
    shown = re.findall(r"^ +([0-9.]+) s  (.*)$", told, re.MULTILINE)
    more = sum(int(n) for n in re.findall(r"\.\.\. and (\d+) more", told))
    told_ones = [what for _, what in shown if what in {d["what"] for d in summary["decisions_log"]}]
    assert len(told_ones) + more == len(summary["decisions_log"])


def test_the_script_runs_as_it_is_printed(told: str, in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = told[told.index("CREATE STREAM") : told.index("odd_amount and odd_device are")]
    (in_tmp / "demo.sql").write_text(script)
    command = re.search(r"\./run eddyline (run demo\.sql .*)", told)
    assert command is not None
    assert main(command[1].split()) == 0
    assert capsys.readouterr().out.startswith("until ")


def test_event_times_of_decisions_and_phases() -> None:
    marks = [_Mark(100, 1.0, 4.0, "p -> a"), _Mark(200, 3.0, 9.0, "p -> b"), _Mark(250, 3.5, 9.0, "p -> c")]
    ran = _Ran(Summary(seconds=4.0), marks, ())
    assert [ran.when(Decision("reroute", at, "", "")) for at in (1, 100, 101, 250, 999)] == [4, 4, 9, 9, 9]
    assert [ran.until(event) for event in (3, 4, 5, 9, 10)] == [1, 1, 3, 3, 4]
    assert [ran.route(event) for event in (3, 4, 8, 9, 10)] == ["", "p -> a", "p -> a", "p -> c", "p -> c"]
