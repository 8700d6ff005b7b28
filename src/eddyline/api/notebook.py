"""Queries and runs as a notebook shows them: a few facts in a table, long text folded. A run that goes on is shown
again and again, in place, by a thread that ends with it. IPython is used only if it is there already: then this is a
notebook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any, Protocol

from eddyline.runtime.recording.feed import Event
from eddyline.runtime.reporting.summary import Progress

_EVERY = 0.5
"""Seconds between two displays of a run."""


class Shown(Protocol):
    """What a notebook can show."""

    def _repr_html_(self) -> str: ...


def show(run: Shown, over: threading.Event) -> None:
    """Show a run, and show it again until it is `over`. In a terminal it is printed once."""
    from IPython.display import display

    def bundle() -> dict[str, str]:
        return {"text/plain": repr(run), "text/html": run._repr_html_()}

    if not _in_notebook():
        display({"text/plain": repr(run)}, raw=True)  # type: ignore[no-untyped-call]
        return
    ended = over.is_set()
    shown = display(bundle(), raw=True, display_id=True)  # type: ignore[no-untyped-call]

    def follow() -> None:
        while not over.wait(_EVERY):
            shown.update(bundle(), raw=True)
        shown.update(bundle(), raw=True)

    if not ended:
        threading.Thread(target=follow, name="eddyline's display", daemon=True).start()


def figures_inline() -> None:
    """Make the notebook show figures of matplotlib, unless the user has chosen how it does."""
    if not _in_notebook():
        return
    from IPython.core.pylabtools import select_figure_formats
    from matplotlib.figure import Figure

    shell = sys.modules["IPython"].get_ipython()
    formatters = shell.display_formatter.formatters
    kinds = ("image/png", "image/svg+xml", "image/jpeg", "application/pdf")
    if not any(Figure in formatters[kind].type_printers for kind in kinds):
        select_figure_formats(shell, {"png"})  # type: ignore[no-untyped-call]


def _in_notebook() -> bool:
    shell: Any = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None


def routes(events: Iterable[Event]) -> dict[str, str]:
    """The present route of each source, and the share of its rows that take it, from the last sample.

    >>> route = {"source": "o", "steps": ["probe p"], "share": 0.9}
    >>> routes([{"type": "sample", "routes": [route, {"source": "p", "steps": []}]}])
    {'route of o': 'probe p (90 %)'}
    """
    samples = [event for event in events if event["type"] == "sample"]
    found = {}
    for route in samples[-1].get("routes", ()) if samples else ():
        share = route.get("share")
        if route["steps"]:
            words = " -> ".join(route["steps"])
            found[f"route of {route['source']}"] = (
                words if share is None else f"{words} ({share:.0%})".replace("%", " %")
            )
    return found


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
