"""The page of the command line: every command and option of the parser is in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from eddyline.cli.page import commands, page
from eddyline.cli.parser import parser_of_commands


def test_page_is_up_to_date() -> None:
    written = Path(__file__).parents[2] / "docs" / "command-line.md"
    assert written.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m eddyline.cli.page > docs/command-line.md"
    )


def test_every_option_is_there() -> None:
    sections = dict(part.split("\n", 1) for part in commands().split("## eddyline ")[1:])
    found = next(action for action in parser_of_commands()._actions if isinstance(action, argparse._SubParsersAction))
    assert sections.keys() == found.choices.keys()
    for name, parser in found.choices.items():
        for action in parser._actions:
            if action.option_strings and action.dest != "help":
                assert f"| `{action.option_strings[0]}" in sections[name], (name, action.option_strings)
    assert "eddyline completion bash|zsh|fish" in sections["completion"]


def test_values_and_repetition() -> None:
    text = commands()
    assert "[--set KEY=VALUE]..." in text
    assert "| `--set KEY=VALUE` | a setting, as in slots=4; may be given several times |" in text
    assert "| `bash\\|zsh\\|fish` |" in text, "a pipe would end the cell"
    assert "[--json]" in text and "%(" not in text
