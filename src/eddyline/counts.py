"""The counts of a job: frozen values that add up, per stream and in total.

Each row is counted once, by the process that splits it (engine/tally.py). The counts of a batch are the sum over its
tasks and slots, those of a run are the sum over its batches, and a commit holds the sum over all batches of the job.
Slots' records, commits, progress and the summary all hold this one type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StreamCounts:
    """The counts of one stream or table; lengths of time are in microseconds."""

    used: int = 0
    """Rows of a stream that are neither late nor dead."""
    loaded: int = 0
    """Rows of a table that could be read."""
    late: int = 0
    dead: int = 0
    behind: int = 0
    """The most that a row was behind the newest row before it."""
    late_by: int = 0
    """The most that a late row was behind the newest row of earlier batches."""
    overtaken: int = 0
    """The most that a row was behind the query's watermark while its stream did not hold that back."""
    reason: str = ""
    """Why the first dead row is dead."""

    def __add__(self, other: StreamCounts) -> StreamCounts:
        return StreamCounts(
            self.used + other.used,
            self.loaded + other.loaded,
            self.late + other.late,
            self.dead + other.dead,
            max(self.behind, other.behind),
            max(self.late_by, other.late_by),
            max(self.overtaken, other.overtaken),
            self.reason or other.reason,
        )

    @property
    def rows(self) -> int:
        """All rows read, late and dead ones too."""
        return self.used + self.loaded + self.late + self.dead


@dataclass(frozen=True)
class SpillCounts:
    """What groups of rows did that left memory; a group counts each time."""

    left: int = 0
    """Groups that left memory."""
    rows: int = 0
    """Rows that left memory with them."""
    sweeps: int = 0
    """Groups that were swept: the results that they missed were made."""
    results: int = 0
    """Those results."""

    def __add__(self, other: SpillCounts) -> SpillCounts:
        return SpillCounts(
            self.left + other.left,
            self.rows + other.rows,
            self.sweeps + other.sweeps,
            self.results + other.results,
        )


@dataclass(frozen=True)
class Counts:
    """The counts of a task, a slot's turn, a batch, a run or a job; rows_in = rows_used + rows_late + rows_dead.

    >>> one = Counts({"s": StreamCounts(used=3, late=1)}, rows_out=2)
    >>> both = one + Counts({"s": StreamCounts(dead=1), "t": StreamCounts(loaded=9)})
    >>> both.rows_in, both.streams["s"].rows, both.streams["t"].rows, both.rows_out
    (5, 5, 9, 2)
    """

    streams: Mapping[str, StreamCounts] = field(default_factory=dict)
    """By stream and table."""
    rows_out: int = 0
    expression_errors: int = 0
    first_error: str = ""
    """What the first expression error said, if a user function said something."""
    spill: SpillCounts = SpillCounts()

    def __add__(self, other: Counts) -> Counts:
        streams = dict(self.streams)
        for name, counts in other.streams.items():
            streams[name] = streams[name] + counts if name in streams else counts
        return Counts(
            streams,
            self.rows_out + other.rows_out,
            self.expression_errors + other.expression_errors,
            self.first_error or other.first_error,
            self.spill + other.spill,
        )

    @property
    def rows_in(self) -> int:
        """Rows read. The rows of tables that could be read are not among them: a table is no stream."""
        return self.rows_used + self.rows_late + self.rows_dead

    @property
    def rows_used(self) -> int:
        """Rows of streams that are neither late nor dead."""
        return sum(counts.used for counts in self.streams.values())

    @property
    def rows_late(self) -> int:
        """Rows of streams that were older than the watermark."""
        return sum(counts.late for counts in self.streams.values())

    @property
    def rows_dead(self) -> int:
        """Rows of streams and tables that could not be read, or have no usable time."""
        return sum(counts.dead for counts in self.streams.values())

    @property
    def totals(self) -> dict[str, int]:
        """The totals, under the names that the summary has for them."""
        return {
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_used": self.rows_used,
            "rows_late": self.rows_late,
            "rows_dead": self.rows_dead,
            "expression_errors": self.expression_errors,
        }
