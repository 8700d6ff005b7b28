"""Tables that commands print once: aligned columns, as wide as their cells need, with bold titles on a terminal."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDE = 10_000
"""A width that no table reaches, so that no cell is cut: the terminal wraps long lines."""


def table_text(titles: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """The table as text for standard output; the columns in `right` are aligned to the right.

    >>> print(table_text(("case", "value"), [("two", "2"), ("eleven", "11")], right=[1]))
    case    value
    two         2
    eleven     11
    """
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for i, title in enumerate(titles):
        table.add_column(Text(title), justify="right" if i in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    console = Console(file=io.StringIO(), width=_WIDE, color_system="standard" if styled else None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
