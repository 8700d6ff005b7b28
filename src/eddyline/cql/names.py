"""Names are case-insensitive, as in DuckDB; a message about an unknown name suggests the most similar known one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from eddyline.cql.places import shown
from eddyline.cql.quoting import quoted

_MOST_LISTED = 8


def same(a: str, b: str) -> bool:
    """Whether two names are equal but for their case."""
    return a.lower() == b.lower()


def did_you_mean(name: str, known: Iterable[str], columns: bool = False) -> str:
    """The end of a message about an unknown name: `; did you mean 'x'?`, or the list of known names, or nothing. Names
    of `columns` that a script must write in double quotes are shown in them."""
    names = list(dict.fromkeys(known))
    by_lower = {n.lower(): n for n in names}
    written = name.lower()[:100]
    swapped = [known for known in by_lower if sorted(known) == sorted(written)]  # cvs: too short to be found similar
    close = swapped or difflib.get_close_matches(written, by_lower, n=1, cutoff=0.7)
    if close:
        meant = by_lower[close[0]]
        quotes = columns and quoted(meant) != meant
        return f"; did you mean {_column(meant)} (in double quotes)?" if quotes else f"; did you mean {shown(meant)}?"
    if not names:
        return ""
    listed = ", ".join(_column(n) if columns else shown(n)[1:-1] for n in names[:_MOST_LISTED])
    return f"; there is {listed}{', ...' if len(names) > _MOST_LISTED else ''}"


def _column(name: str) -> str:
    return shown(quoted(name))[1:-1]
