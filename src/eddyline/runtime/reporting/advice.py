"""Advice at the end of a run: which rows of each stream were late or dead, and what would have kept them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eddyline.counts import StreamCounts
from eddyline.cql.quoting import quoted
from eddyline.cql.units import UNITS
from eddyline.runtime.reporting.remedy import remedy

NEARLY_ALL = 0.9
"""A stream that loses at least this share of its rows gets a warning line of its own."""
_ROUND = {
    "MILLISECOND": (1, 2, 5, 10, 20, 50, 100, 200, 500),
    "SECOND": (1, 2, 3, 4, 5, 10, 15, 20, 30, 45),
    "MINUTE": (1, 2, 3, 4, 5, 10, 15, 20, 30, 45),
    "HOUR": (1, 2, 3, 4, 6, 8, 12, 18),
    "DAY": (1, 2, 3, 4, 5, 6, 7, 10, 14, 21, 30, 60, 90, 180, 365),
}
_SHORT = (("DAY", "d"), ("HOUR", "h"), ("MINUTE", "min"), ("SECOND", "s"))
_COMPARE = "compare the declared columns with the data, or keep the dead rows with DEAD INTO a sink"


@dataclass(frozen=True)
class StreamEnd:
    """The counts of a stream with this lateness. `other_lateness` is the largest lateness of any stream of the
    query. The dead rows of a table that `is_asked` are rows that cannot be read and keys whose lookup failed; other
    answers are not counted. `columns` are its columns, if they are known."""

    name: str
    lateness: int
    other_lateness: int
    counts: StreamCounts
    is_asked: bool = False
    is_table: bool = False
    columns: pa.Schema | None = None

    def as_dict(self) -> dict[str, Any]:
        """As a dictionary for JSON."""
        counts = self.counts
        return {
            "rows_in": counts.rows,
            "rows_late": counts.late,
            "rows_dead": counts.dead,
            "out_of_order_seconds": counts.behind / 1e6,
            "largest_lateness_seconds": counts.late_by / 1e6,
            "lateness": self.enough,
            "dead_share": round(counts.dead / counts.rows, 6) if counts.rows else 0.0,
            "first_dead": counts.reason,
        }

    @property
    def enough(self) -> str:
        """The LATENESS that would have kept all rows: of this stream, or of every stream if the others overtook this
        one while it was idle. "" if the declared one is enough."""
        if self.counts.overtaken:
            return as_written(max(self.counts.behind, self.other_lateness + self.counts.overtaken))
        return as_written(self.counts.behind) if self.counts.behind > self.lateness else ""

    @property
    def late(self) -> str:
        """How late the late rows were, and which LATENESS would have kept them."""
        by = short(max(self.counts.late_by, self.counts.overtaken))
        if self.counts.overtaken:
            more = "for every stream, or a longer idle_timeout,"
            return f"up to {by}, after it was idle; LATENESS {self.enough} {more} would have kept them"
        return f"up to {by}; LATENESS {self.enough} would have kept them"

    @property
    def dead(self) -> str:
        """The share of dead rows, the reason of the first, and the remedy for it, unless a warning has the remedy."""
        if self.is_asked:
            return f"unreadable rows, or keys whose lookup failed; first: {shortened(self.counts.reason)}"
        what = "" if self._nearly_all_dead else self._remedy
        told = f"{percent(self.counts.dead, self.counts.rows)}; first: {shortened(self.counts.reason)}"
        return f"{told}; {what}" if what else told

    @property
    def _remedy(self) -> str:
        kind = "TABLE" if self.is_table else "STREAM"
        return remedy(self.counts.reason, f"{kind} {quoted(self.name)}", self.columns)

    @property
    def _nearly_all_dead(self) -> bool:
        return not self.is_asked and 0 < self.counts.dead >= NEARLY_ALL * self.counts.rows

    @property
    def warnings(self) -> list[str]:
        """Warnings about rows that are nearly all dead, or out of order."""
        counts, found = self.counts, []
        if self._nearly_all_dead:
            how_many = f"all {counts.dead:,}" if counts.dead == counts.rows else f"{counts.dead:,} of {counts.rows:,}"
            what = self._remedy or _COMPARE
            found.append(f"{how_many} rows of {self.name} are dead: {shortened(counts.reason)}; {what}")
        if not counts.late and counts.behind > self.lateness:
            found.append(
                f"rows of {self.name} come up to {short(counts.behind)} out of order; write LATENESS {self.enough}"
                f" behind TIMESTAMP BY of {self.name}, or some may be late"
            )
        return found


def of_streams(
    lateness: Mapping[str, int],
    counts: Mapping[str, StreamCounts],
    asked: Collection[str] = (),
    columns: Mapping[str, pa.Schema] | None = None,
) -> list[StreamEnd]:
    """The end of each stream and table, in the order of their names. Tables have no lateness; some are `asked`.
    `columns` are those of the streams whose columns are known."""
    most, known = max(lateness.values(), default=0), columns or {}
    return [
        StreamEnd(name, lateness.get(name, 0), most, counts[name], name in asked, name not in lateness, known.get(name))
        for name in sorted(counts)
    ]


def summed_up(ends: Sequence[StreamEnd]) -> dict[str, Any]:
    """The fields of the summary that describe streams and tables."""
    return {
        "streams": {end.name: end.as_dict() for end in ends},
        "late": told(ends, "late"),
        "dead": told(ends, "dead"),
        "warnings": [warning for end in ends for warning in end.warnings],
    }


def told(ends: Sequence[StreamEnd], what: str) -> str:
    """Describe the `late` or `dead` rows of each stream that has some, in brackets. If there are several streams, each
    description begins with the name of the stream and the number of rows.

    >>> told([StreamEnd("s", 0, 0, StreamCounts(7, 0, 2, 0, 103_000_000, 98_000_000))], "late")
    ' (up to 1 min 38 s; LATENESS 2 MINUTES would have kept them)'
    """
    some = [end for end in ends if getattr(end.counts, what)]
    parts = [getattr(end, what) for end in some]
    if len(ends) > 1:
        parts = [f"{end.name} {getattr(end.counts, what):,}: {part}" for end, part in zip(some, parts, strict=True)]
    return f" ({'; '.join(parts)})" if parts else ""


def as_written(micros: int) -> str:
    """Round a length of time up to one that a person would write.

    >>> as_written(103_000_000), as_written(3_000_000), as_written(1_000_000_000_000_000)
    ('2 MINUTES', '3 SECONDS', '12000 DAYS')
    """
    for unit, numbers in _ROUND.items():
        for number in numbers:
            if number * UNITS[unit] >= micros:
                return f"{number} {unit}{'S' if number > 1 else ''}"
    days = -(-micros // UNITS["DAY"])
    size = 10 ** (len(str(days)) - 2)
    return f"{-(-days // size) * size} DAYS"


def short(micros: int) -> str:
    """Format a length of time for display, in its two largest units.

    >>> short(103_000_000), short(3_000_000), short(250_000), short(90_061_000_000), short(7)
    ('1 min 43 s', '3 s', '0.25 s', '1 d 1 h', '0.000007 s')
    """
    if micros < UNITS["MINUTE"]:
        return f"{micros / 1e6:.6f}".rstrip("0").rstrip(".") + " s"
    parts: list[str] = []
    for unit, name in _SHORT:
        whole, micros = divmod(micros, UNITS[unit])
        parts += [f"{whole} {name}"] if whole or parts else []
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def percent(part: int, whole: int) -> str:
    """Format a share for display; 100 % only if it is exact.

    >>> percent(999, 1000), percent(1, 1), percent(1, 100_000), percent(99_999, 100_000)
    ('99.9 %', '100 %', 'less than 0.1 %', 'more than 99.9 %')
    """
    if part == whole:
        return "100 %"
    share = 100 * part / whole
    if share < 0.1:
        return "less than 0.1 %"
    return "more than 99.9 %" if share > 99.9 else f"{share:.1f} %"


def shortened(reason: str, most: int = 200) -> str:
    """Put a reason on one line of at most `most` characters."""
    line = " ".join(reason.split())
    return line if len(line) <= most else line[: most - 3] + "..."
