"""Values of a generator's settings: a number, a time, a domain, a distribution; and how two of them are blended.

Every setting that drift may change is one of these. `blend` gives the values of a ramp; settings that cannot be blended
can only jump.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eddyline.errors import SettingError
from eddyline.runtime.options import duration

_NUMBER = r"[+-]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


@dataclass(frozen=True)
class Domain:
    """`low..high`, both included, or words (then low..high are their numbers)."""

    low: float
    high: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Distribution:
    """How values are drawn from a domain; `exponent` is that of zipf."""

    name: str
    exponent: float = 0.0


Value = float | Domain | Distribution
"""A number is a rate, a share or a length of time in microseconds."""


def read_value(key: str, text: str) -> Value:
    """Parse the value of an option or of a drift step; the last word of its key says which kind it must be."""
    text = text.strip()
    kind = key.rpartition(".")[2]
    if kind in ("disorder", "late_by"):
        return float(duration(text, key))
    if kind == "domain":
        return _domain(key, text)
    if kind == "distribution":
        return _distribution(key, text)
    if not re.fullmatch(_NUMBER, text) or float(text) < 0:
        raise SettingError(f"{key} is a number of at least 0, not '{text}'")
    if kind != "rate" and float(text) > 1:
        raise SettingError(f"{key} is a share between 0 and 1, not '{text}'")
    return float(text)


def blend(key: str, start: Value, end: Value, part: float) -> Value:
    """The value `part` of the way from one to the other."""
    if isinstance(start, float) and isinstance(end, float):
        return start + (end - start) * part
    if isinstance(start, Domain) and isinstance(end, Domain) and not start.words and not end.words:
        return Domain(start.low + (end.low - start.low) * part, start.high + (end.high - start.high) * part)
    raise SettingError(f"drift: {key} cannot move gradually; write = in place of ~")


def _domain(key: str, text: str) -> Domain:
    match = re.fullmatch(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})", text)
    if match:
        low, high = float(match[1]), float(match[2])
        if low > high:
            raise SettingError(f"{key}: {text} is empty, the larger number comes last")
        return Domain(low, high)
    words = tuple(word.strip() for word in text.split("|"))
    if len(words) < 2 or ".." in text:
        raise SettingError(f"{key} is a range such as '0..99' or words such as 'red|green|blue', not '{text}'")
    return Domain(0.0, len(words) - 1.0, words)


def _distribution(key: str, text: str) -> Distribution:
    if text in ("uniform", "sequence", "constant"):
        return Distribution(text)
    match = re.fullmatch(rf"zipf\(\s*({_NUMBER})\s*\)", text)
    if match is None or float(match[1]) <= 0:
        raise SettingError(f"{key} is uniform, zipf(1.2), sequence or constant, not '{text}'")
    return Distribution("zipf", float(match[1]))
