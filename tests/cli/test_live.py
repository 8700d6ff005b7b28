"""`--live`: what is shown, that it stays in its place on a terminal, and that the terminal is left as it was."""

from __future__ import annotations

import io
import os
import re
import subprocess
from pathlib import Path
from typing import cast

import pytest
from rich.console import Console

from eddyline.cli.display import Display
from eddyline.cli.frame import Frame, Look
from eddyline.cli.live import LiveLines, LiveView, plan_line
from eddyline.cli.main import main
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.routing.decisions import Decision
from eddyline.routing.gathered import Gathered, SignatureTotals, StepTotals, TurnReport
from eddyline.routing.report import Packets
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from tests.support.jobs import bound
from tests.support.terminal import Terminal, on_terminal

_FUNCTIONS = """\
import time
import numpy as np
import eddyline as el


@el.udf(returns="BOOLEAN")
def live_most(x):
    return x % 10 != 0


@el.udf(returns="BOOLEAN")
def live_few(x):
    return x % 1000 == 1


@el.udf(returns="BOOLEAN")
def live_sleeps(x):
    print("asleep", flush=True)
    time.sleep(60)
    return x > 0


@el.udf(returns="BOOLEAN")
def live_breaks(x):
    return (x > 0)[:-1]
"""
_STREAMS = """\
CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate
    OPTIONS (rows 40000, rate 1000, k.distribution sequence, k.domain '0..99999') TIMESTAMP BY ts;
CREATE STREAM t (ts TIMESTAMP, k BIGINT) USING generate
    OPTIONS (rows 40000, rate 1000, k.distribution sequence, k.domain '0..99999') TIMESTAMP BY ts;
"""
_SELECT = """\
SELECT a.k FROM s [RANGE 5 SECONDS] AS a, t [RANGE 5 SECONDS] AS b
WHERE a.k = b.k AND live_most(a.k) AND live_few(a.k);
"""
_SETTINGS = Settings(batch_rows=8000)


@pytest.fixture
def script(in_tmp: Path) -> Path:
    """A job whose checks are written in the wrong order, and its functions."""
    (in_tmp / "functions.py").write_text(_FUNCTIONS)
    path = in_tmp / "job.sql"
    path.write_text(_STREAMS + _SELECT)
    return path


@pytest.fixture
def looks(script: Path) -> list[Look]:
    """A look after each batch of the job."""
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    seen: list[Look] = []
    runner = _runner(script)
    runner.run(watch=lambda progress: seen.append(Look(progress, runner.reporter.report())))
    assert len(seen) >= 10
    return seen


def _runner(script: Path) -> LocalRunner:
    return LocalRunner(prepare(script.read_text(), sink=CallbackSink(lambda batch: None)), _SETTINGS)


# What is shown


def shown(now: Look, then: Look, columns: int, lines: int) -> list[str]:
    """The lines of a frame for a terminal of this size."""
    out = io.StringIO()
    Console(file=out, width=columns, height=lines, color_system=None).print(Frame(now, then))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_frame_tells_everything(looks: list[Look]) -> None:
    text = "\n".join(shown(looks[-1], looks[-3], 100, 60))
    assert "80,000 rows in" in text
    assert re.search(r"^  s +[\d,]+ +40,000$", text, re.MULTILINE)
    assert re.search(r"^  a +\d+ %  -> .*\[live_few\(a\.k\)\] 0?\.?\d", text, re.MULTILINE)
    assert re.search(r"^  b +\d+ %  -> a ", text, re.MULTILINE)
    assert re.search(r"^packets of +tuples +threshold +waiting +longest wait$", text, re.MULTILINE)
    decisions = looks[-1].report.decisions
    assert f"decisions: {len(decisions):,} reroute" in text
    assert text.splitlines()[-1].startswith(f"  {decisions[-1].at:,} rows: {decisions[-1].what}; ")


def test_a_frame_is_of_the_last_stretch(looks: list[Look]) -> None:
    now, then = looks[-1], looks[-2]
    seconds = now.progress.seconds - then.progress.seconds
    first = shown(now, then, 100, 60)[0]
    assert f"| {(now.progress.rows_in - then.progress.rows_in) / seconds:,.0f} rows/s |" in first


def test_a_frame_fits(looks: list[Look]) -> None:
    for columns in (1, 10, 40, 80, 200):
        for lines in (1, 2, 3, 5, 8, 12, 16, 20, 30, 60):
            for now, then in ((looks[0], looks[0]), (looks[-1], looks[-3])):
                found = shown(now, then, columns, lines)
                assert len(found) <= max(1, lines - 1)
                assert all(len(line) <= columns for line in found)
                if lines >= 20 and columns >= 40:
                    assert any(text.startswith("routes, ") for text in found)
                    assert any(text.startswith("decisions: ") for text in found)
                    for newest in now.report.decisions[-1:]:
                        assert f"{newest.at:,} rows: " in found[-1]


def test_several_slots_are_shown_as_one() -> None:
    """As on Spark: what two slots told in two batches. `EDDYLINE_GOLDEN=1` writes what is shown."""
    query = bound(
        "SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS], c [RANGE 5 SECONDS] WHERE a.k = b.k AND b.k = c.k",
        a="k", b="k", c="k",
    )  # fmt: skip
    plan = Plan(query)
    gathered, looks = Gathered(plan, 2), list[Look]()
    for turn in (0, 1):
        for slot in (0, 1):
            kept, other = StepTotals(900, 9, 0.001, 3), StepTotals(100, 50 * turn, 0.002, 1)
            what, why = "a: c, b instead of b, c", "it is cheaper"
            told = TurnReport(
                plan=plan.text,
                signatures=(
                    SignatureTotals((1, 0), turn, (kept, other)),
                    SignatureTotals((2, 0), 1, (other, kept)),
                    SignatureTotals((5, 0), 0, (StepTotals(9, 18, 0.0, 1),)),
                ),
                packets=(Packets((1, 0), 4, 1000, 0, 512, 0.25, 3),),
                counts={"reroute": 2},
                decisions=(Decision("reroute", 500 + turn, what, why, {"expected": 1e-6}),),
                rows=(1000, 1000, 0),
                input_batch=8192,
            )
            gathered.add(slot, told)
        rows = 4000 * (turn + 1)
        by_stream = {"a": rows // 2, "b": rows // 2}
        progress = Progress(rows, 40, 1, 0, 3000, 2_000_000, turn + 1, turn + 1.0, 0, by_stream, rows, 40)
        words = plan_line(explain(query, partition(plan, 2, 256))), "something else"
        looks.append(Look(progress, gathered.report(turn + 1.0), words))
    text = "\n".join(shown(looks[1], looks[0], 100, 40)) + "\n"
    golden = Path(__file__).with_name("live_of_slots.txt")
    if os.environ.get("EDDYLINE_GOLDEN") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_rates_do_not_count_the_rows_of_earlier_runs(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    progress = Progress(rows_in=1000, rows_out=100, seconds=2.0, run_rows_in=10, run_rows_out=4)
    look = Look(progress, _runner(script).reporter.report())
    assert "2.0 s | 1,000 rows in | 5 rows/s | 100 out | 2 out/s" in shown(look, look, 80, 24)


def test_before_the_first_row(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner = _runner(script)
    look = Look(runner.reporter.progress(), runner.reporter.report())
    text = shown(look, look, 80, 24)
    assert "0.0 s | 0 rows in | - rows/s | 0 out | - out/s" in text
    assert "decisions: none yet" in text


@pytest.mark.parametrize(
    ("word", "columns", "line"),
    [
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("a\nb\x1b[2J[red]", 20, r"a\nb\u001b[2J[red]"),
        ("abcd", 3, "ab…"),
    ],
)
def test_words_are_cut_and_cannot_move_the_cursor(looks: list[Look], word: str, columns: int, line: str) -> None:
    look = Look(looks[-1].progress, looks[-1].report, (word,))
    assert shown(look, look, columns, 24)[2] == line


# When


def test_a_redraw_every_fifth_of_a_second_at_most(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner, screen, clock = _runner(script), _Drawn(), ManualClock()
    with LiveView(runner.reporter, cast(Display, screen), clock=clock) as view:
        for _ in range(5):
            view(Progress())
        assert len(screen.frames) == 1
        clock.advance(0.19)
        view(Progress())
        assert len(screen.frames) == 1
        clock.advance(0.02)
        view(Progress())
        assert len(screen.frames) == 2
    assert len(screen.frames) == 3  # how it ended
    assert not screen.is_open


def test_an_error_leaves_the_last_frame_and_an_open_cursor(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    screen = _Drawn()
    with pytest.raises(KeyboardInterrupt), LiveView(_runner(script).reporter, cast(Display, screen)) as view:
        view(Progress())
        raise KeyboardInterrupt
    assert len(screen.frames) == 1
    assert not screen.is_open


def test_lines_where_there_is_no_terminal(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner, clock = _runner(script), ManualClock()
    with LiveLines(runner.reporter, clock) as view:

        def watch(progress: Progress) -> None:
            view(progress)
            clock.advance(0.3)

        runner.run(watch=watch)
    said = capsys.readouterr().err.splitlines()
    assert sum(" rows in | " in line for line in said) == 3
    told = [line for line in said if line.startswith("reroute: ")]
    assert told == [f"reroute: {d.at:,} rows: {d.what}; {d.why}" for d in runner.reporter.report().decisions]
    assert told


@pytest.mark.parametrize("more", [[], ["--checkpoint", "ck"]])
def test_run_live_without_a_terminal(script: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*_LIVE, *more]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 42
    assert "\x1b" not in said.err + said.out
    assert "reroute: " in said.err
    assert said.err.splitlines()[-1].startswith("done: 80,000 rows in, 40 rows out")


class _Drawn:
    """A display that keeps frames in place of showing them."""

    def __init__(self) -> None:
        self.frames: list[object] = []
        self.is_open = False

    def show(self, lines: object) -> None:
        self.frames.append(lines)
        self.is_open = True

    def close(self) -> None:
        self.is_open = False


# On a terminal


_LIVE = ("run", "job.sql", "--engine", "local", "--udf", "functions.py", "--live", "--set", "batch_rows=8000")


def test_the_view_stays_in_its_place(script: Path) -> None:
    session = on_terminal(*_LIVE)
    lines = session.terminal.lines
    assert session.status == 0
    assert not session.terminal.hidden
    assert not session.terminal.wrapped
    assert "\x1b[?25l" in session.output
    assert "\x1b[1m" in session.output
    assert sum(line.startswith("routes, ") for line in lines) == 1
    assert sum(line.startswith("decisions: ") for line in lines) == 1
    first = lines.index("   k")
    printed = [int(line) for line in lines[first + 2 : first + 42]]
    assert sorted(printed) == list(range(1, 40000, 1000))
    assert lines[-2].startswith("done: 80,000 rows in, 40 rows out in ")


def test_without_color(script: Path) -> None:
    session = on_terminal(*_LIVE, NO_COLOR="1")
    assert session.status == 0
    assert not re.search(r"\x1b\[\d*m", session.output)
    assert any(line.startswith("routes, ") for line in session.terminal.lines)


def test_a_dumb_terminal_gets_lines(script: Path) -> None:
    session = on_terminal(*_LIVE, TERM="dumb")
    assert session.status == 0
    assert "\x1b" not in session.output
    assert "reroute: " in session.output


@pytest.mark.parametrize(("columns", "rows"), [(40, 12), (20, 5), (250, 70)])
def test_terminals_of_other_sizes(script: Path, columns: int, rows: int) -> None:
    session = on_terminal(*_LIVE, "--set", "seed=1", columns=columns, rows=rows)
    assert session.status == 0
    assert not session.terminal.hidden
    drawn = session.output[: session.output.index("done: ")]
    terminal = Terminal(columns, rows)
    terminal.show(drawn)
    assert not terminal.wrapped


def test_interrupts(script: Path) -> None:
    script.write_text(_STREAMS.replace("rows 40000, ", "") + _SELECT)
    asked = False

    def react(output: str, process: subprocess.Popen[bytes]) -> None:
        nonlocal asked
        if not asked and "routes, " in output:
            asked = True
            process.send_signal(2)

    session = on_terminal(*_LIVE, react=react)
    assert session.status == 130
    assert not session.terminal.hidden
    assert "stopping after the batch in hand" in session.output
    assert not any("stopping" in line for line in session.terminal.lines), "the last line replaces the hint"
    assert session.terminal.lines[-2].startswith("stopped: ")


def test_a_second_interrupt(script: Path) -> None:
    script.write_text(_STREAMS + "SELECT k FROM s WHERE live_sleeps(k);")
    sent = 0

    def react(output: str, process: subprocess.Popen[bytes]) -> None:
        nonlocal sent
        if (sent == 0 and "asleep" in output) or (sent == 1 and "stopping" in output):
            sent += 1
            process.send_signal(2)

    session = on_terminal(*_LIVE, react=react)
    assert session.status == 130
    assert not session.terminal.hidden
    assert session.terminal.lines[-2] == "eddyline: interrupted"


def test_a_job_that_fails(script: Path) -> None:
    script.write_text(_STREAMS + "SELECT k FROM s WHERE live_breaks(k);")
    session = on_terminal(*_LIVE)
    assert session.status == 1
    assert not session.terminal.hidden
    assert session.terminal.lines[-2].startswith("eddyline: the user function live_breaks gave ")
