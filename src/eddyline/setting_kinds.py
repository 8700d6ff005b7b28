"""Kinds of values of settings: how their text is read, what is said of a wrong one, and how a value is written."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from sys import float_info
from typing import Any

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


class WrongValue(ValueError):
    """What is wrong with a value; settings.py adds the key and where the value was written."""


@dataclass(frozen=True)
class Kind:
    """How the values of a setting are written: `values` lists them for people, `read` turns text into a value or raises
    `WrongValue`, and the word `none`, if there is one, is read as None."""

    values: str
    read: Callable[[str], Any]
    none: str | None = None

    def value(self, text: str) -> Any:
        """The value that a text stands for."""
        return None if text == self.none else self.read(text)

    def text(self, value: object) -> str:
        """The text that stands for a value."""
        return str(self.none) if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def choice(*names: str, none: str | None = None) -> Kind:
    """One of these words."""

    def read(text: str) -> str:
        if text not in names:
            raise WrongValue(f"{text!r} is not one of {', '.join(names)}{did_you_mean(text, names)}")
        return text

    return Kind(", ".join(names), read, none)


def whole(values: str, least: int = 1, most: int = 2**63 - 1, none: str | None = None) -> Kind:
    """A whole number from `least` to `most`."""

    def read(text: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9][0-9_]{0,99}", text) or int(text) < least:
            raise WrongValue(f"{text!r} is not a whole number of at least {least}")
        if int(text) > most:
            raise WrongValue(f"{text} is too large; the largest is {most}")
        return int(text)

    return Kind(_with(none, values), read, none)


def decimal(
    values: str, wanted: str, most: float = float_info.max, zero: bool = False, none: str | None = None
) -> Kind:
    """A number above 0, or with `zero` from 0 on, as a person or Python writes it; `wanted` describes it in errors."""

    def read(text: str) -> float:
        written = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text, re.IGNORECASE)
        if not written or not (0 < float(text) <= most or (zero and float(text) == 0)):
            raise WrongValue(f"{text!r} is not {wanted}")
        return float(text)

    return Kind(_with(none, values), read, none)


def seconds(none: str | None = None) -> Kind:
    """A number of seconds above 0."""
    return decimal("a number of seconds", "a number of seconds above 0", none=none)


def plan_kind() -> Kind:
    """A plan: auto, mjoin, or a tree of aliases."""

    def read(text: str) -> str:
        if text not in ("auto", "mjoin") and not text.startswith("("):
            raise WrongValue(f"{text!r} is not auto, mjoin or a tree of aliases such as ((a b) c)")
        return text

    return Kind("auto, mjoin, a tree of aliases such as ((a b) c)", read)


def _with(none: str | None, values: str) -> str:
    return values if none is None else f"{none}, {values}"


def parse_size(text: str) -> int:
    """Bytes of a size such as 200MB, 1.5 GiB or 4096.

    >>> parse_size("1.5KiB")
    1536
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _SIZES or float(match[1]) == 0:
        raise WrongValue(f"{text!r} is not a size such as 200MB or 2GiB")
    return int(float(match[1]) * _SIZES[match[2].upper()])


def size_text(size: int) -> str:
    """Bytes as a person would say them.

    >>> size_text(1000), size_text(2_345_678)
    ('1 KB', '2.346 MB')
    """
    unit, of_unit = next(((u, n) for u, n in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)) if size >= n), ("bytes", 1))
    return f"{size / of_unit:.4g} {unit}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is unknown: the known one that is nearest, if one is near."""
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
