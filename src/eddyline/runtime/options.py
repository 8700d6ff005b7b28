"""The OPTIONS of a declaration: typed, and no option that nobody knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from eddyline.cql.names import did_you_mean
from eddyline.cql.units import MONTHS, amount, parts_of
from eddyline.errors import SettingError


class Options:
    """The options of one declaration; each is taken once, and `done` refuses what was not taken.

    >>> options = Options("csv", {"header": "true", "pth": "x"})
    >>> options.flag("header", False)
    True
    >>> options.done()
    Traceback (most recent call last):
    ...
    eddyline.errors.SettingError: csv has no option 'pth'; there is header
    """

    def __init__(self, format_: str, options: Mapping[str, str]) -> None:
        self._format = format_
        self._left = dict(options)
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key in self._left

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        self._known.append(key)
        return self._left.pop(key, default)

    def required(self, key: str, example: str) -> str:
        """A text that must be given."""
        value = self.text(key)
        if not value:
            raise SettingError(f"{self._format} needs an option {key}, as in OPTIONS ({key} '{example}')")
        return value

    def choice(self, key: str, values: Sequence[str]) -> str:
        """One of a few words, the first if not given."""
        value = self.text(key, values[0]).lower()
        if value not in values:
            raise SettingError(f"option {key} is {' or '.join(values)}, not '{value}'")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self.choice(key, ("true", "false") if default else ("false", "true")) == "true"

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """A whole number."""
        value = self.text(key, str(default)).replace("_", "")
        if not value.isdecimal() or int(value) < least:
            raise SettingError(f"option {key} is a whole number of at least {least}, not '{value}'")
        return int(value)

    def char(self, key: str, default: str) -> str:
        """One character, or nothing."""
        value = self.text(key, default)
        value = "\t" if value == "\\t" else value
        if len(value) > 1 or not value.isascii() or value in ("\r", "\n"):
            raise SettingError(f"option {key} is one character, not '{value}'")
        return value

    def prefixed(self, names: Sequence[str]) -> dict[str, str]:
        """Takes every option `NAME.something` whose NAME is one of `names` (lower case)."""
        found = {key: value for key, value in self._left.items() if key.rpartition(".")[0] in names}
        for key in found:
            del self._left[key]
        return found

    def done(self) -> None:
        """Refuses options that were not taken."""
        for key in self._left:
            raise SettingError(f"{self._format} has no option '{key}'{did_you_mean(key, self._known)}")


def duration(text: str, what: str) -> int:
    """Microseconds of a length of time such as `30 s` or `1 hour 30 minutes`.

    >>> duration("1.5 s", "disorder")
    1500000
    """
    total = 0
    for number, unit in parts_of(text.strip()) or [("", "")]:
        value = amount(number, unit) if unit and unit not in MONTHS else None
        if value is None or value < 0:
            raise SettingError(f"{what} is a length of time such as '2 s' or '1 minute 30 s', not '{text.strip()}'")
        total += value
    return total


def instant(text: str, what: str) -> int:
    """Microseconds since the epoch of a date or time such as 2026-01-01 or 2026-01-01T12:00:00 (UTC)."""
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        raise SettingError(f"{what} is a time such as '2026-01-01 12:00:00', not '{text.strip()}'") from None
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when
    return round((when - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
