"""Arguments in, exit status out: 0 done, 1 the job failed, 2 the script, a setting or the command line is wrong, 130 or
143 a signal ended it.

Every error is shown as one line (and the line of the script with a caret); a traceback is shown only with
EDDYLINE_DEBUG=1. Each command is imported when it is called, so that `--help` and errors are quick.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module

from eddyline import __version__
from eddyline.cli.stopping import end_at_once
from eddyline.cli.streams import fill_in, note, silence
from eddyline.cli.watching import add_options, spelt_out
from eddyline.errors import InternalError, JobError, ScriptError, SettingError
from eddyline.setting_kinds import parse_size

BEGAN = time.perf_counter()
"""The time when the process started, nearly; `start_seconds` counts from here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Without `arguments` it takes those of the process, and handles its
    signals."""
    fill_in()
    if arguments is None:
        end_at_once()
    status = _run(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout)
        status = status or _cannot_write(error)
    try:
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
    return status


def _run(arguments: Sequence[str] | None) -> int:
    """Run the command; errors are printed and become the exit status."""
    try:
        options = parser_of_commands().parse_args(spelt_out(sys.argv[1:] if arguments is None else arguments))
        command: Callable[[argparse.Namespace], int] = import_module(f"eddyline.cli.{options.command}").command
        return command(options)
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except OSError as error:
        return _cannot_write(error)
    except ScriptError as error:
        return _say(error.pretty(), 2)
    except SettingError as error:
        return _say(str(error), 2)
    except JobError as error:
        return _say(str(error), 1)
    except Exception as error:
        from eddyline.runtime.running.failures import told

        meant = told(error)
        return _bug(meant) if isinstance(meant, InternalError) else _say(str(meant), 1)


def _say(message: str, status: int) -> int:
    if os.environ.get("EDDYLINE_DEBUG") == "1":
        traceback.print_exc()
    note(f"eddyline: {message}")
    return status


def _cannot_write(error: OSError) -> int:
    """Report an error of reading or writing; returns the exit status. A closed pipe needs no message. Any other
    connection that fails is that to the JVM."""
    if isinstance(error, ConnectionError) and not isinstance(error, BrokenPipeError):
        return _say("Spark's JVM is gone", 1)
    where = f"read or write {error.filename}" if error.filename else "write to standard output"
    return 1 if isinstance(error, BrokenPipeError) else _say(f"cannot {where}: {error.strerror or error}", 1)


def _bug(error: InternalError) -> int:
    return _say(
        f"this is a bug of Eddyline, please report it with the script (EDDYLINE_DEBUG=1 shows more): {error}", 1
    )


def parser_of_commands() -> argparse.ArgumentParser:
    """The commands and their options; a command is the file of its name."""
    parser = argparse.ArgumentParser(prog="eddyline", description="SQL over streams, re-planned while the data drifts.")
    parser.add_argument("--version", action="version", version=f"eddyline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run a script", description="Run a script to the end of its sources.")
    _script(run)
    run.add_argument("--json", action="store_true", help="print a summary as a JSON object, on the last line")
    run.add_argument("--progress", action="store_true", help="show a progress line even if stderr is not a terminal")
    run.add_argument("--checkpoint", metavar="DIR", help="save the job in this folder; the next run continues there")
    run.add_argument("--follow", action="store_true", help="wait for more rows until the job is stopped")
    run.add_argument(
        "--final", action="store_true", help="the streams have ended: give the last results, finish the job"
    )
    run.add_argument(
        "--prefer-from", metavar="FILE", help="handle rows first that meet the condition in FILE, which may change"
    )
    run.add_argument("--record", metavar="FILE", help="record decisions and counters, for `why` and `replay`")
    run.add_argument(
        "--record-size", type=_size, default=64_000_000, metavar="SIZE",
        help="size of each part of the record (default 64MB); the newest 16 parts are kept",
    )  # fmt: skip
    run.add_argument("--live", action="store_true", help="show rates, routes and decisions while it runs, on stderr")
    add_options(run)

    validate = commands.add_parser(
        "validate",
        help="check a script without running it",
        description="Check everything that can be checked without reading a row: the script, its settings, sources,"
        " sinks and query, for the chosen engine. Starts no JVM.",
    )
    _script(validate)
    validate.add_argument("--checkpoint", metavar="DIR", help="check also that this checkpoint is of the script's job")

    explain = commands.add_parser("explain", help="show the plan of a script", description="Show the plan of a script.")
    _script(explain)

    demo = commands.add_parser("demo", help="run a generated job with drifting data")
    demo.add_argument(
        "--seconds", type=_seconds, default=60, help="seconds of event time, at least 6 (default %(default)s)"
    )
    demo.add_argument("--engine", default="spark", choices=("spark", "local"), help="spark (default) or local")
    demo.add_argument("--live", action="store_true", help="show the run in this terminal in place of the browser")
    add_options(demo)
    demo.add_argument("--out", default=".", metavar="DIR", help="where the picture goes (default: here)")
    demo.add_argument("--record", metavar="FILE", help="record the adaptive run, for `why` and `replay`")
    demo.add_argument("--json", action="store_true", help="print a summary as a JSON object, on the last line")

    bench = commands.add_parser("bench", help="run a benchmark; without a name: list them")
    bench.add_argument("name", nargs="?", metavar="NAME")
    bench.add_argument("--json", action="store_true", help="print {name, results} as JSON")
    bench.add_argument("--part", metavar="PART", help="only this part of the benchmark, if it has parts")
    bench.add_argument("--seed", type=int, metavar="N", help="seed of what is drawn at random (default: a fresh one)")
    bench.add_argument("--seeds", type=int, metavar="N", help="how many seeds, from --seed on")
    bench.add_argument("--against", metavar="CHECKOUT", help="another checkout of the code to compare with (core)")
    bench.add_argument("--minutes", type=float, metavar="N", help="how long it runs (kafka-lag; default 20)")
    bench.add_argument("--query", metavar="NAME,...", help="only these queries (peers)")
    bench.add_argument("--peer", metavar="NAME,...", help="only these peers (peers)")
    bench.add_argument("--rows", type=int, metavar="N", help="rows of all streams of a query (peers)")
    bench.add_argument("--rounds", type=int, metavar="N", help="how often each side runs (peers)")
    bench.add_argument("--quick", action="store_true", default=None, help="fewer rows, one round (peers)")
    bench.add_argument("--out", metavar="DIR", help="where CSV and PNG go (kafka-lag: here, peers: peers-out)")

    experiment = commands.add_parser("experiment", help="measure a figure of a paper again; without a name: list them")
    experiment.add_argument("name", nargs="?", metavar="NAME", help="one of the list, or all")
    experiment.add_argument("--out", default="experiments-out", metavar="DIR", help="for CSV and PNG (%(default)s)")
    experiment.add_argument("--quick", action="store_true", help="a small version: shorter runs, fewer points")

    why = commands.add_parser(
        "why",
        help="say what changed in a recorded run, and why",
        description="Tell in sentences what changed in a run that was recorded (run --record FILE), when, why, what was"
        " expected, and whether it paid.",
    )
    why.add_argument("file", metavar="FILE")
    why.add_argument(
        "--at", metavar="TIME", help="tell only this moment: seconds such as 12.5, or a time in UTC such as 20:15:30"
    )

    replay = commands.add_parser(
        "replay",
        help="show a recorded run as if it were live",
        description="Show a run that was recorded (run --record FILE) on the dashboard, as if it were live.",
    )
    replay.add_argument("file", metavar="FILE")
    replay.add_argument(
        "--speed", type=_speed, default=1.0, metavar="N", help="speed; 20: twenty times as fast (default 1)"
    )
    add_options(replay)
    replay.add_argument("--text", action="store_true", help="print lines in place of the dashboard")

    doctor = commands.add_parser(
        "doctor",
        help="check this machine",
        description="Say what this machine has and lacks for Eddyline, a line each, with what to do. Exit status 1 if"
        " jobs of the engine would fail.",
    )
    doctor.add_argument("--spark", action="store_true", help="also start a small Spark session and a Python worker")
    doctor.add_argument("--json", action="store_true", help="print {ok, engine, checks} as JSON")
    doctor.add_argument("--checkpoint", metavar="DIR", help="check also the disk of this folder")
    _engine(doctor)

    completion = commands.add_parser(
        "completion",
        help="print a script by which a shell completes commands",
        description='For bash: eval "$(eddyline completion bash)". For zsh and fish see docs/installation.md.',
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell that will read it")
    return parser


def _seconds(text: str) -> int:
    if not text.isdigit() or int(text) < 6:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 6")
    return int(text)


def _speed(text: str) -> float:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) or float(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return float(text)


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None


def _script(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of every command that takes a script: the script, the engine, settings, functions."""
    parser.add_argument("script", metavar="SCRIPT.sql")
    _engine(parser)
    parser.add_argument("--conf", action="append", default=[], metavar="SPARK_KEY=VALUE", help="a setting of Spark")
    parser.add_argument(
        "--udf",
        action="append",
        default=[],
        metavar="MODULE",
        help="a Python module, or a .py file, with @el.udf functions",
    )


def _engine(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how jobs run."""
    parser.add_argument(
        "--engine", default="spark", metavar="spark|local", help="spark (default), or local: in this process"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting, as in slots=4",
    )
    parser.add_argument("--config", metavar="FILE.toml", help="a file with settings in an [eddyline] table")
