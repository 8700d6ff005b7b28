"""`--live`: what is shown, that it stays in its place on a terminal, and that the terminal is left as it was."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from eddyline.cli.live import LiveLines, LiveView, Look, frame, plan_line
from eddyline.cli.main import main
from eddyline.cli.screen import Screen, clipped, width
from eddyline.plan.explain import explain
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.routing.gathered import Gathered
from eddyline.runtime.reporting.summary import Progress
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from tests.jobs import bound

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
    runner.run(watch=lambda progress: seen.append(Look(progress, runner.report())))
    assert len(seen) >= 10
    return seen


def _runner(script: Path) -> LocalRunner:
    return LocalRunner(prepare(script.read_text(), sink=CallbackSink(lambda batch: None)), _SETTINGS)


# What is shown


def test_a_frame_tells_everything(looks: list[Look]) -> None:
    text = "\n".join(line for line, _ in frame(looks[-1], looks[-3], 100, 60))
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
    first = frame(now, then, 100, 60)[0][0]
    assert f"| {(now.progress.rows_in - then.progress.rows_in) / seconds:,.0f} rows/s |" in first


def test_a_frame_fits(looks: list[Look]) -> None:
    for columns in (1, 10, 40, 80, 200):
        for lines in (1, 2, 3, 5, 8, 12, 16, 20, 30, 60):
            for now, then in ((looks[0], looks[0]), (looks[-1], looks[-3])):
                shown = frame(now, then, columns, lines)
                assert len(shown) <= lines
                if lines >= 20:
                    assert any(text.startswith("routes, ") for text, _ in shown)
                    assert any(text.startswith("decisions: ") for text, _ in shown)
                    for newest in now.report.decisions[-1:]:
                        assert f"{newest.at:,} rows: " in shown[-1][0]


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
            kept, other = [900, 9, 0.001, 3], [100, 50 * turn, 0.002, 1]
            told = {
                "plan": plan.text,
                "steps": [[1, 0, turn, [kept, other]], [2, 0, 1, [other, kept]], [5, 0, 0, [[9, 18, 0.0, 1]]]],
                "packets": [[1, 0, 4, 1000, 0, 512, 0.25, 3]],
                "counts": {"reroute": 2},
                "decisions": [["reroute", 500 + turn, "a: c, b instead of b, c", "it is cheaper", {"expected": 1e-6}]],
                "rows": [1000, 1000, 0],
                "input_batch": 8192,
            }
            gathered.add(slot, told)
        rows = 4000 * (turn + 1)
        progress = Progress(rows, 40, 1, 0, 3000, 2_000_000, turn + 1, turn + 1.0, 0, {"a": rows // 2, "b": rows // 2})
        words = plan_line(explain(query, partition(plan, 2, 256))), "something else"
        looks.append(Look(progress, gathered.report(turn + 1.0), words))
    shown = "\n".join(text.rstrip() for text, _ in frame(looks[1], looks[0], 100, 40)) + "\n"
    golden = Path(__file__).with_name("live_of_slots.txt")
    if os.environ.get("EDDYLINE_GOLDEN") == "1":
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")


def test_before_the_first_row(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner = _runner(script)
    look = Look(runner.progress(), runner.report())
    text = [line for line, _ in frame(look, look, 80, 24)]
    assert "0.0 s | 0 rows in | - rows/s | 0 out | - out/s" in text
    assert "decisions: none yet" in text


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [
        ("abc", 3, "abc"), ("abcd", 3, "ab…"), ("日本語", 6, "日本語"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"),
        ("a\nb\x1b[2J", 20, "a?b?[2J"), ("e\u0301e\u0301", 2, "e\u0301e\u0301"), ("abc", 1, "…"), ("abc", 0, ""),
    ],
)  # fmt: skip
def test_clipping(text: str, columns: int, shown: str) -> None:
    assert clipped(text, columns) == shown
    assert width(shown) <= columns


# When


def test_a_redraw_every_fifth_of_a_second_at_most(script: Path) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner, screen, clock = _runner(script), _Drawn(), ManualClock()
    with LiveView(runner, screen, clock=clock) as view:
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
    with pytest.raises(KeyboardInterrupt), LiveView(_runner(script), screen) as view:
        view(Progress())
        raise KeyboardInterrupt
    assert len(screen.frames) == 1
    assert not screen.is_open


def test_lines_where_there_is_no_terminal(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(_FUNCTIONS, "functions", "exec"), {})
    runner, clock = _runner(script), ManualClock()
    with LiveLines(runner, clock) as view:

        def watch(progress: Progress) -> None:
            view(progress)
            clock.advance(0.3)

        runner.run(watch=watch)
    said = capsys.readouterr().err.splitlines()
    assert sum(" rows in | " in line for line in said) == 3
    told = [line for line in said if line.startswith("reroute: ")]
    assert told == [f"reroute: {d.at:,} rows: {d.what}; {d.why}" for d in runner.report().decisions]
    assert told


@pytest.mark.parametrize("more", [[], ["--checkpoint", "ck"]])
def test_run_live_without_a_terminal(script: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*_LIVE, *more]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 42
    assert "\x1b" not in said.err + said.out
    assert "reroute: " in said.err
    assert said.err.splitlines()[-1].startswith("done: 80,000 rows in, 40 rows out")


def test_a_terminal_that_changes_its_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    size = [(20, 10)]
    monkeypatch.setattr("eddyline.cli.screen.terminal_size", lambda: size[0])
    screen = Screen(color=False)
    screen.draw([("one", ""), ("two", "title")])
    assert capsys.readouterr().err == "\r\x1b[Jone\ntwo\n"
    screen.draw([("three", "")])
    assert capsys.readouterr().err == "\x1b[2A\r\x1b[Jthree\n"
    size[0] = (4, 3)
    screen.draw([("four", ""), ("five", ""), ("six", "")])
    assert capsys.readouterr().err == "\x1b[2J\x1b[Hfo…\nfi…\n"
    screen.erase()
    screen.erase()
    assert capsys.readouterr().err == "\x1b[2A\r\x1b[J"


class _Drawn(Screen):
    """Keeps frames in place of showing them."""

    def __init__(self) -> None:
        super().__init__()
        self.frames: list[object] = []
        self.is_open = False

    def open(self) -> None:
        self.is_open = True

    def draw(self, lines: object) -> None:
        self.frames.append(lines)

    def close(self) -> None:
        self.is_open = False


# On a terminal


@dataclass
class Terminal:
    """What a terminal of some size shows after some output. Lines that scrolled out at the top are in `lines` too."""

    columns: int
    rows: int

    def __post_init__(self) -> None:
        self.lines: list[str] = [""]
        self.hidden = False
        self.wrapped = False
        self._y = self._x = 0

    def show(self, output: str) -> None:
        """Output with the few controls that Eddyline uses."""
        for control, character in re.findall(r"\x1b\[([?\d]*[A-Za-z])|(.)", output, re.DOTALL):
            self._control(control) if control else self._character(character)

    def _control(self, control: str) -> None:
        if control.endswith("A"):
            top = max(0, len(self.lines) - self.rows)
            assert self._y - int(control[:-1]) >= top, "moved above the screen"
            self._y -= int(control[:-1])
        elif control == "J":
            self.lines[self._y] = self.lines[self._y][: self._x]
            del self.lines[self._y + 1 :]
        elif control in ("?25l", "?25h"):
            self.hidden = control == "?25l"
        else:
            assert control.endswith("m"), f"unexpected control {control!r}"

    def _character(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._y += 1
            self.lines += [""] * (self._y == len(self.lines))
        else:
            line = self.lines[self._y].ljust(self._x)
            self.lines[self._y] = line[: self._x] + character + line[self._x + 1 :]
            self._x += 1
            self.wrapped = self.wrapped or self._x > self.columns


@dataclass(frozen=True)
class Session:
    """What a command on a terminal left."""

    status: int
    output: str
    terminal: Terminal


def _on_terminal(
    *arguments: str,
    columns: int = 100,
    rows: int = 30,
    react: Callable[[str, subprocess.Popen[bytes]], None] = lambda output, process: None,
    **environ: str,
) -> Session:
    """Runs eddyline with all three streams on a terminal; `react` is called as output comes."""
    try:
        master, slave = pty.openpty()
    except OSError as error:  # in a folder that somebody made the root, for example
        pytest.skip(f"there are no pseudo-terminals here: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "eddyline.cli", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**{k: v for k, v in os.environ.items() if k != "NO_COLOR"}, "TERM": "xterm", **environ},
    )
    os.close(slave)
    output = b""
    deadline = time.monotonic() + 120
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.1)[0]:
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            output += piece
            react(output.decode(errors="replace"), process)
        status = process.wait(timeout=300)
    finally:
        process.kill()
        os.close(master)
    terminal = Terminal(columns, rows)
    text = output.decode()
    terminal.show(text)
    return Session(status, text, terminal)


_LIVE = ("run", "job.sql", "--engine", "local", "--udf", "functions.py", "--live", "--set", "batch_rows=8000")


def test_the_view_stays_in_its_place(script: Path) -> None:
    session = _on_terminal(*_LIVE)
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
    session = _on_terminal(*_LIVE, NO_COLOR="1")
    assert session.status == 0
    assert not re.search(r"\x1b\[\d*m", session.output)
    assert any(line.startswith("routes, ") for line in session.terminal.lines)


def test_a_dumb_terminal_gets_lines(script: Path) -> None:
    session = _on_terminal(*_LIVE, TERM="dumb")
    assert session.status == 0
    assert "\x1b" not in session.output
    assert "reroute: " in session.output


@pytest.mark.parametrize(("columns", "rows"), [(40, 12), (20, 5), (250, 70)])
def test_terminals_of_other_sizes(script: Path, columns: int, rows: int) -> None:
    session = _on_terminal(*_LIVE, "--set", "seed=1", columns=columns, rows=rows)
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

    session = _on_terminal(*_LIVE, react=react)
    assert session.status == 0
    assert not session.terminal.hidden
    assert "stopping after the batch in hand" in session.output
    assert session.terminal.lines[-2].startswith("stopped: ")


def test_a_second_interrupt(script: Path) -> None:
    script.write_text(_STREAMS + "SELECT k FROM s WHERE live_sleeps(k);")
    sent = 0

    def react(output: str, process: subprocess.Popen[bytes]) -> None:
        nonlocal sent
        if (sent == 0 and "asleep" in output) or (sent == 1 and "stopping" in output):
            sent += 1
            process.send_signal(2)

    session = _on_terminal(*_LIVE, react=react)
    assert session.status == 130
    assert not session.terminal.hidden
    assert session.terminal.lines[-2] == "eddyline: interrupted"


def test_a_job_that_fails(script: Path) -> None:
    script.write_text(_STREAMS + "SELECT k FROM s WHERE live_breaks(k);")
    session = _on_terminal(*_LIVE)
    assert session.status == 1
    assert not session.terminal.hidden
    assert session.terminal.lines[-2].startswith("eddyline: the user function live_breaks gave ")
