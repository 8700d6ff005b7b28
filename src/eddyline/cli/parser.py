"""The commands and options of the command line."""

from __future__ import annotations

import argparse
import re

from eddyline import __version__
from eddyline.cli.watching import add_options
from eddyline.setting_kinds import parse_size


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
        "--seconds", type=_seconds, default=30, help="seconds of event time, at least 12 (default %(default)s)"
    )
    demo.add_argument("--engine", default="spark", choices=("spark", "local"), help="spark (default) or local")
    demo.add_argument("--live", action="store_true", help="show the run in this terminal in place of the browser")
    add_options(demo)
    demo.add_argument("--out", default=".", metavar="DIR", help="where the picture goes (default: here)")
    demo.add_argument("--record", metavar="FILE", help="record the adaptive run, for `why` and `replay`")
    demo.add_argument("--json", action="store_true", help="print a summary as a JSON object, on the last line")

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
    if not text.isdigit() or int(text) < 12:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 12")
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
