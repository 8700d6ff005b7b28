"""`eddyline completion`: the script by which a shell completes the command line, made by shtab from the parser."""

from __future__ import annotations

import argparse

import shtab

from eddyline.cli.parser import parser_of_commands
from eddyline.settings import TABLE

_FILES = ("script", "config", "prefer_from", "record", "file")
_FOLDERS = ("checkpoint", "out", "against")
"""Arguments that are names of files and of folders."""
_NO_SPACE = """
# A setting is followed by its value, not by a space.
_eddyline() {
  _shtab_eddyline "$@"
  [[ "${COMPREPLY[0]-}" == *= ]] && compopt -o nospace 2>/dev/null
  return 0
}
complete -o bashdefault -F _eddyline eddyline"""


def command(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    print(shtab.complete(completed(parser_of_commands()), options.shell))
    if options.shell == "bash":
        print(_NO_SPACE)
    return 0


def completed(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The parser, whose arguments know what they are completed to."""
    values = {
        "settings": [f"{setting.key}=" for setting in TABLE],
        "engine": ["spark", "local"],
    }
    for of_command in _commands(parser):
        for action in of_command._actions:
            known = values.get(action.dest)
            if action.dest in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
            elif action.dest in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif known is not None and action.choices is None:
                action.choices = known
    return parser


def _commands(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [of_command for action in found for of_command in action.choices.values()]
