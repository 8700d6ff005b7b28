"""Formats numbers and reasons of a record for display."""

from __future__ import annotations

import re
from collections.abc import Sequence

from eddyline.routing.report import number
from eddyline.setting_kinds import size_text

_NUMBERS = re.compile(r"\b(selectivity) (\d+)-(\d+)|\b(rate) (\d+)\b")
_CHANGED = re.compile(r"\ban interval has passed; (?=(?:selectivity of|rate of|selection) )")


def seconds(t: float) -> str:
    """A time of the run.

    >>> seconds(12.3456), seconds(3725.0)
    ('12.3 s', '1:02:05.0')
    """
    if t < 600:
        return f"{t:.1f} s"
    return f"{int(t // 3600)}:{int(t // 60 % 60):02}:{t % 60:04.1f}"


def size(value: float) -> str:
    """Bytes."""
    return size_text(round(value))


def cpu(share: float) -> str:
    """A share of a core.

    >>> cpu(0.205), cpu(0.0052)
    ('20.5 %', '0.52 %')
    """
    return f"{number(100 * share)} %"


def plain(text: str) -> str:
    """A text without the full stop at its end."""
    return str(text).rstrip(". ")


def named(why: str, aliases: Sequence[str]) -> str:
    """Why the optimizer looked for a plan, with names of sources in place of their numbers. A text that has names
    already is left as it is.

    >>> named("an interval has passed; rate 1 5 -> 7, selectivity 0-1 0.1 -> 0.2; the rest", ["a", "b"])
    'a regular check found that the data changed: rate of b 5 -> 7, selectivity of a and b 0.1 -> 0.2; the rest'
    """

    def name(match: re.Match[str]) -> str:
        if match[1]:
            return f"{match[1]} of {_alias(match[2], aliases)} and {_alias(match[3], aliases)}"
        return f"{match[4]} of {_alias(match[5], aliases)}"

    found = _CHANGED.sub("a regular check found that the data changed: ", _NUMBERS.sub(name, why))
    return found.replace("an interval has passed", "a regular check")


def reason(why: str, aliases: Sequence[str]) -> str:
    """Why the optimizer proposed a plan: without the predictions, which are told apart, and with names of sources.

    >>> reason("an interval has passed; rate 1 5 -> 7; 0.2 -> 0.1 of a core, 1 MB -> 2 MB", ["a", "b"])
    'a regular check found that the data changed: rate of b 5 -> 7'
    """
    parts = why.split("; ")
    end = next((at for at, part in enumerate(parts) if " of a core, " in part), len(parts))
    return named("; ".join(parts[:end]), aliases)


def _alias(text: str, aliases: Sequence[str]) -> str:
    return aliases[int(text)] if int(text) < len(aliases) else text
