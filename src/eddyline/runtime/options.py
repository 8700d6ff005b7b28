"""The OPTIONS of a declaration: read with their types; unknown options are refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from eddyline.cql.declaration import Declaration
from eddyline.cql.names import did_you_mean
from eddyline.cql.units import MONTHS, amount, parts_of
from eddyline.errors import SettingError


class Options:
    """The options of one declaration, whose keys are lower case. Each is taken once, and `done` refuses options that
    were not taken. Messages name options as the documentation spells them, or as the script does (`spelled`).

    >>> options = Options("csv", {"header": "true", "nullvalu": "x"}, {"nullvalu": "nullValu"})
    >>> options.flag("header", False), options.text("nullValue")
    (True, '')
    >>> options.done()
    Traceback (most recent call last):
    ...
    eddyline.errors.SettingError: csv has no option 'nullValu'; did you mean 'nullValue'?
    """

    def __init__(self, format_: str, options: Mapping[str, str], spelled: Mapping[str, str] | None = None) -> None:
        self._format = format_
        self._left = dict(options)
        self._spelled = spelled or {}
        self._known: list[str] = []

    @staticmethod
    def of(declaration: Declaration) -> Options:
        """The options of a declaration."""
        return Options(declaration.format, declaration.options, declaration.spelled)

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key.lower() in self._left

    def as_written(self, key: str) -> str:
        """An option as the script spells it."""
        return self._spelled.get(key, key)

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        self._known.append(key)
        return self._left.pop(key.lower(), default)

    def required(self, key: str, example: str) -> str:
        """A text that must be given."""
        value = self.text(key)
        if not value:
            for left in self._left:
                written = self.as_written(left)
                if (hint := did_you_mean(written, [key])).startswith("; did you mean"):
                    raise SettingError(f"{self._format} has no option '{written}'{hint}", f"option {left}")
            raise SettingError(f"{self._format} needs an option {key}, as in OPTIONS ({key} '{example}')")
        return value

    def different(self, key: str, example: str) -> list[str]:
        """Different names with commas between them, which must be given."""
        names = [name.strip() for name in self.required(key, example).split(",")]
        if "" in names or len(set(names)) < len(names):
            raise self._wrong(key, f"is a list of different {key.removesuffix('s')}s such as 'a,b'")
        return names

    def choice(self, key: str, values: Sequence[str]) -> str:
        """One of a few words, the first if not given."""
        value = self.text(key, values[0]).lower()
        if value not in values:
            raise self._wrong(key, f"is {' or '.join(values)}, not '{value}'")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        return self.choice(key, ("true", "false") if default else ("false", "true")) == "true"

    def whole(self, key: str, default: int, least: int = 0) -> int:
        """A whole number."""
        value = self.text(key, str(default)).replace("_", "")
        if not value.isdecimal() or int(value) < least:
            raise self._wrong(key, f"is a whole number of at least {least}, not '{value}'")
        return int(value)

    def seconds(self, key: str, default: str) -> float:
        """A length of time that is not 0, in seconds: '500 ms', or a number of seconds.

        >>> Options("x", {"timeout": "1.5"}).seconds("timeout", "1 minute")
        1.5
        """
        number = self.text(key, default).strip()
        is_number = number.isascii() and number.replace(".", "", 1).isdecimal()
        micros = duration(f"{number} s" if is_number else number, f"option {key}")
        if not micros:
            raise self._wrong(key, "must be more than 0")
        return micros / 1e6

    def char(self, key: str, default: str) -> str:
        """One character, or nothing."""
        value = self.text(key, default)
        value = "\t" if value == "\\t" else value
        if len(value) > 1 or not value.isascii() or value in ("\r", "\n"):
            raise self._wrong(key, f"is one character, not '{value}'")
        return value

    def prefixed(self, names: Collection[str]) -> dict[str, str]:
        """Takes every option `NAME.something` whose NAME is one of `names` (lower case)."""
        found = {key: value for key, value in self._left.items() if key.rpartition(".")[0] in names}
        for key in found:
            del self._left[key]
        return found

    def under(self, prefix: str) -> dict[str, str]:
        """Takes every option `PREFIX.something`, by the part behind the dot (lower case)."""
        start = f"{prefix}."
        return {key.removeprefix(start): self._left.pop(key) for key in list(self._left) if key.startswith(start)}

    def done(self) -> None:
        """SettingError for options that were not taken."""
        for key in self._left:
            written = self.as_written(key)
            hint = did_you_mean(written, self._known)
            raise SettingError(f"{self._format} has no option '{written}'{hint}", f"option {key}")

    def _wrong(self, key: str, what: str) -> SettingError:
        return SettingError(f"option {key} {what}", f"option {key.lower()}")


def duration(text: str, what: str) -> int:
    """Microseconds of a length of time such as `30 s` or `1 hour 30 minutes`.

    >>> duration("1.5 s", "disorder")
    1500000
    """
    total = 0
    for number, unit in parts_of(text.strip()) or [("", "")]:
        value = amount(number, unit) if unit and unit not in MONTHS else None
        if value is None or value < 0:
            raise SettingError(
                f"{what} is a length of time such as '2 s' or '1 minute 30 s', not '{text.strip()}'",
                what.lower() if what.startswith("option ") else "",
            )
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
