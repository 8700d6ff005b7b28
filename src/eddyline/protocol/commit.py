"""A commit: a batch is done. It names every file that a restart needs, and is written once, in one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.counts import Counts
from eddyline.engine.groups.seen_counts import SeenCounts
from eddyline.engine.plan_course import PlanCourse
from eddyline.engine.watermarks import Advanced, Reached
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.outlet import Staged, Written


@dataclass(frozen=True)
class LogFile:
    """A segment of the log, written by one slot."""

    name: str
    slot: int
    rows: int
    newest: Mapping[str, int | None]
    """The newest time of the rows of each stream; None: the rows never expire."""
    bytes: int = 0
    """The size of the file."""


@dataclass(frozen=True)
class Commit:
    """Batch `batch` is done."""

    batch: int
    offsets: Any
    """How far the sources were read, in each source's own form."""
    watermarks: Reached
    counts: Counts = field(default_factory=Counts)
    """The sum over all batches of the job; results do not depend on it."""
    log: tuple[LogFile, ...] = ()
    small: tuple[str, ...] = ()
    advanced: Advanced = field(default_factory=Advanced)
    """How far slots have emitted results and released rows: the watermarks after the batch, and how far ROWS windows
    have counted (protocol/turn.py)."""
    finished: bool = False
    """Whether the streams have ended and everything was flushed."""
    history: str = ""
    plans: Mapping[int, PlanCourse] = field(default_factory=dict)
    """The plan of each slot; results do not depend on it."""
    waiting: int = 0
    """Rows, and cells of groups, that wait for the watermark; results do not depend on it."""
    ledger: Ledger = field(default_factory=Ledger)
    """What is known of groups on disk."""
    moves: Moves = field(default_factory=Moves)
    """What partition groups do before the next batch."""
    slot_map: SlotMap | None = None
    """The slot of each group in the batch; None if groups cannot move."""
    next_map: SlotMap | None = None
    """The slot of each group in the next batch."""
    moved: bytes = b""
    """The accounts of the groups that have another slot in the next batch (`BatchDecision.moved`)."""
    complete: Advanced | None = None
    """In a query with tables that are asked: how far all results were made, of rows that wait for an answer too."""
    waits: bool = False
    """Whether rows wait for answers."""
    attempts: Mapping[int, str] = field(default_factory=dict)
    """In such a query: by slot, the attempt at its turn that counts."""
    balance: ManagerState = field(default_factory=ManagerState)
    """What the distribution manager remembers; results do not depend on it."""
    owed: tuple[Staged, ...] = ()
    """Staged results of the batch for sinks that get them after the commit; perhaps they have them already."""
    written: tuple[Written, ...] | None = None
    """The newest batch before this one that such sinks got; a sink that has another one has it from another run. None
    if an earlier version wrote a commit of this job."""
    seen: Mapping[str, SeenCounts] | None = None
    """The rows that were read of each stream, for running estimates; None if the job has none. Results do not depend on
    it."""
