"""Queries and runs as a notebook shows them: a few facts in a table, long text folded."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from eddyline.runtime.reporting.summary import Progress


def facts(progress: Progress) -> dict[str, str]:
    """The progress of a run as names and formatted values.

    >>> facts(Progress(rows_in=1200, rows_late=3, batches=2, watermark_us=0))
    {'batches': '2', 'rows in': '1,200', 'rows out': '0', 'late': '3', 'watermark': '1970-01-01 00:00:00+00:00'}
    """
    found = {"batches": progress.batches, "rows in": progress.rows_in, "rows out": progress.rows_out}
    found |= {"late": progress.rows_late} if progress.rows_late else {}
    found |= {"dead": progress.rows_dead} if progress.rows_dead else {}
    known = progress.watermark
    return {name: f"{n:,}" for name, n in found.items()} | ({} if known is None else {"watermark": str(known)})


def table(rows: Mapping[str, str]) -> str:
    """An HTML table of names and values.

    >>> table({"a": "x < y"})
    '<table><tr><th>a</th><td>x &lt; y</td></tr></table>'
    """
    cells = (f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows.items())
    return f"<table>{''.join(cells)}</table>"


def folded(title: str, text: str) -> str:
    """HTML that shows the text when the title is clicked."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def one_line(text: str, most: int = 80) -> str:
    """A text in one line of at most `most` characters.

    >>> one_line("SELECT *\\n  FROM s", 10)
    'SELECT ...'
    """
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 3] + "..."
