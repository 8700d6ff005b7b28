"""Arguments in, exit status out: 0 done, 1 the job failed, 2 the script, a setting or the command line is wrong, 130 or
143 a signal ended it.

Every error is shown as one line (and the line of the script with a caret); a traceback is shown only with
EDDYLINE_DEBUG=1. Each command is imported when it is called, so that `--help` and errors are quick. This module imports
little, so that signals are handled early.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from eddyline.cli.stopping import end_at_once, finished, last_words
from eddyline.cli.streams import STANDARD_OUTPUT, columns, fill_in, note, silence

BEGAN = time.perf_counter()
"""The time when the process started, nearly; `start_seconds` counts from here."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status. Without `arguments` it takes those of the process, and handles its
    signals."""
    return guarded(lambda: _run(arguments), of_process=arguments is None)


def guarded(command: Callable[[], int], of_process: bool = True) -> int:
    """Run a command and return its exit status; an error becomes one line. The command of the process handles its
    signals."""
    if of_process:
        end_at_once()
        _look_in_no_folder()
    fill_in()
    status = _caught(command)
    try:
        sys.stdout.flush()
    except OSError as error:
        silence(sys.stdout)
        error.filename = STANDARD_OUTPUT
        status = status or _failed(error)
    try:
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)
    finished(status)
    return status


def _look_in_no_folder() -> None:
    """Remove the folder of the program, or the current one with `python -m`, from the places of modules, here and in
    processes that are started: a file `http.py` there would be imported in place of Python's."""
    os.environ["PYTHONSAFEPATH"] = "1"
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(os.path.dirname(__file__))):
        del sys.path[0]


def _run(arguments: Sequence[str] | None) -> int:
    from importlib import import_module

    from eddyline.cli.parser import parser_of_commands
    from eddyline.cli.watching import spelt_out

    options = parser_of_commands().parse_args(spelt_out(sys.argv[1:] if arguments is None else arguments))
    command: Callable[..., int] = import_module(f"eddyline.cli.{options.command}").command
    return command(options)


def _caught(command: Callable[[], int]) -> int:
    """Run the command; errors are printed and become the exit status."""
    from eddyline.errors import InternalError, JobError, ScriptError, SettingError

    try:
        return command()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else 2
    except KeyboardInterrupt:
        return _say("interrupted", 130)
    except OSError as error:
        return _failed(error)
    except ScriptError as error:
        return _say(error.pretty(columns()), 2)
    except SettingError as error:
        return _say(str(error), 2)
    except JobError as error:
        return _say(str(error), 1)
    except Exception as error:
        from eddyline.runtime.running.failures import told

        meant = told(error)
        if isinstance(meant, InternalError):
            more = "this is a bug of Eddyline, please report it with the script (EDDYLINE_DEBUG=1 shows more)"
            return _say(f"{more}: {meant}", 1)
        return _say(str(meant), 1)


def _say(message: str, status: int) -> int:
    last_words()
    if os.environ.get("EDDYLINE_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    note(f"eddyline: {message}")
    return status


def _failed(error: OSError) -> int:
    """Report an error of the system; returns the exit status. A closed pipe needs no message. A connection that fails
    is that to the JVM: errors of other connections name their servers."""
    from eddyline.runtime.running.failures import told

    if isinstance(error, BrokenPipeError):
        return 1
    if isinstance(error, ConnectionError):
        return _say("Spark's JVM is gone", 1)
    return _say(str(told(error)), 1)
