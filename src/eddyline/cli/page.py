"""The page docs/command-line.md, generated from the parser of the command line."""

from __future__ import annotations

import argparse
import textwrap

from eddyline.cli.parser import parser_of_commands

_HEAD = """# Command line

This page is for people who run `eddyline` in a terminal or a script.
It lists every command and option. It is written from the program itself by `python -m eddyline.cli.page`, so
`eddyline COMMAND --help` says the same; a test fails when it is old.
[Operating a job](operations.md) explains exit statuses, messages, the summary and the display.

In a checkout, `./run eddyline COMMAND ...` runs the command in the checkout's own environment.
A setting is given as `--set KEY=VALUE`; [all settings](settings.md).

"""
_JOINED = "\x00"


def page() -> str:
    """The page as Markdown."""
    return _HEAD + commands()


def commands() -> str:
    """A section of Markdown for each command: what it does, its synopsis, a table of its arguments.

    >>> commands().splitlines()[0]
    '## eddyline run'
    """
    found = next(a for a in parser_of_commands()._actions if isinstance(a, argparse._SubParsersAction))
    about = {choice.dest: choice.help or "" for choice in found._choices_actions}
    return "\n\n".join(_command(name, about[name], parser) for name, parser in found.choices.items())


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> str:
    said = parser.description or about
    arguments = [a for a in parser._actions if a.dest != "help" and a.help != argparse.SUPPRESS]
    rows = "".join(f"| `{_written(a)}` | {_meaning(a, parser)} |\n" for a in arguments)
    words = [_short(a).replace(" ", _JOINED) for a in arguments]  # an option and its value stay in one line
    synopsis = textwrap.fill(
        " ".join(["eddyline", name, *words]),
        96,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    ).replace(_JOINED, " ")
    return (
        f"## eddyline {name}\n\n{said[:1].upper()}{said[1:].rstrip('.')}.\n\n"
        f"```\n{synopsis}\n```\n\n| argument | meaning |\n| --- | --- |\n{rows}"
    )


def _value(action: argparse.Action) -> str:
    """The name of the value that an argument takes; empty for a flag."""
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def _written(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return value.replace("|", "\\|")
    joined = f"[={value}]" if action.nargs == "?" else f" {value}" if value else ""
    return ", ".join(name + joined for name in action.option_strings).replace("|", "\\|")


def _short(action: argparse.Action) -> str:
    text = _written(action).replace("\\|", "|")
    if not action.option_strings:
        return f"[{text}]" if action.nargs == "?" else text
    return f"[{text}]{'...' if isinstance(action.default, list) else ''}"


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    """The help text, with what `%(default)s` and its like stand for."""
    text = (action.help or "the script, or - for standard input") % {**vars(action), "prog": parser.prog}
    again = "; may be given several times" if isinstance(action.default, list) else ""
    return text.replace("|", "\\|") + again


if __name__ == "__main__":
    print(page(), end="")
