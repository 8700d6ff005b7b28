"""Where rows leave a job: its results, and the late and the dead rows of each stream. Each outlet may have a sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Outlet:
    """One kind of rows that leave a job.

    >>> RESULTS.name, Outlet("late", "orders").name
    ('results', 'late-orders')
    """

    kind: Literal["results", "late", "dead"]
    stream: str = ""
    """The stream of late and dead rows."""

    @property
    def name(self) -> str:
        """A name for files and folders."""
        return "-".join([self.kind, *self.stream.split(" ")]) if self.stream else self.kind


RESULTS = Outlet("results")


@dataclass(frozen=True)
class Staged:
    """Files with rows for one outlet."""

    outlet: Outlet
    files: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """The newest batch that had rows for an outlet, and the history of the job up to it."""

    outlet: Outlet
    batch: int
    history: str
