"""The driver of a job: what is decided and summed up after each batch, with a checkpoint or without, here or on Spark.

The coordinator commits batches. Around it are those that decide about the next batch (spiller, balancer, resizer), the
account of the run, and how many rows a batch may have.
"""

from __future__ import annotations

from collections.abc import Sequence

from eddyline.balance.decided import ended_tracks
from eddyline.balance.forced import spill_mode
from eddyline.counts import Counts
from eddyline.engine.watermarks import Silence
from eddyline.errors import InternalError, JobError
from eddyline.plan.spill_axis import spill_axis
from eddyline.protocol.adapted import stays
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.commit import Commit
from eddyline.protocol.coordinator import Coordinator, Deliverer, Journal, Publisher, no_moves
from eddyline.protocol.home import Home
from eddyline.protocol.in_process import InProcess
from eddyline.protocol.record import Record
from eddyline.protocol.resizer import Cores, Resizer
from eddyline.protocol.spiller import Spiller
from eddyline.protocol.ways import ways_of
from eddyline.routing.decisions import Decision
from eddyline.runtime.reporting.account import Account
from eddyline.runtime.running.engine import check_memory
from eddyline.runtime.running.least_memory import fitting
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings

WIDE = 4096
"""The bytes that a row is taken to have in a slot before the first batch has told."""

WARM = 0.1
"""If less than this share of the groups is in memory, a batch does not tell how much memory a row takes."""

IN_STATE = 4
"""The bytes that a row is taken to have in a slot then, for each byte in the log or in a parcel."""

ENOUGH = 10_000
"""A batch with fewer rows is never refused: in a small batch a row takes more memory than in a large one."""


class JobDriver:
    """Commits the batches of one job, decides about the next one, and sums them up."""

    def __init__(
        self, home: Home, settings: Settings, cores: Cores | None = None, here: InProcess | None = None
    ) -> None:
        """If it is known how many `cores` there are, the number of slots follows it, where groups can move. `here`
        knows the slots if they are in this process."""
        self.home, self._memory, self._fixed_rows = home, settings.memory, settings.batch_rows is not None
        self.coordinator: Coordinator | None = None
        self._here, self.account = here, Account(home, here)
        self._spiller = Spiller(home.query, home.settings) if home.spills and home.keeps else None
        self._balancer: Balancer | None = None
        if home.even_map is not None:
            force = None if self._spiller is None else self._spiller.force
            self._balancer = Balancer(
                home.settings.memory,
                mode=spill_mode(settings.spill),
                force=force,
                copies=home.copies,
                ways=ways_of(home),
                aliases=[source.alias for source in home.query.sources],
            )
        axis = spill_axis(home.plan, settings.groups)
        self._groups = 1 if axis is None else axis.count
        self.most_rows = None if self._spiller is None else self._fitting(1, WIDE / home.slots)
        """About how many rows a batch may have so that they fit in memory; None: any number."""
        self._resizer = None if cores is None or self._balancer is None else Resizer(cores, self._balancer)
        self._guessed = True
        """Whether no batch has told that yet."""
        self._added = 0
        """Bytes of the rows of the last batch in the slot that has most of them, if they were enough."""
        self._largest = 0
        """Bytes of the largest slot in the last batch; where groups can leave memory, of those that cannot."""
        self._silence = Silence((), None)

    def begin(self, journal: Journal, publisher: Publisher, deliverer: Deliverer | None = None) -> Coordinator:
        """Begin, or continue from the newest commit of a journal."""
        home = self.home
        self._silence = Silence(home.streams, home.settings.idle_timeout, home.clock)
        deciders = self._spiller or no_moves, self._resizer or self._balancer or stays
        self.coordinator = Coordinator(journal, home, publisher, self._silence, *deciders, deliverer)
        self.account.begin(self.commit)
        return self.coordinator

    @property
    def commit(self) -> Commit:
        """The newest commit."""
        if self.coordinator is not None:
            return self.coordinator.commit
        return Commit(-1, None, self.home.watermarks().reached)

    def finish(self, decision: BatchDecision, records: Sequence[Record]) -> Counts:
        """Publish and commit a batch in which every slot took its turn. Returns its counts."""
        if self.coordinator is None:
            raise InternalError("a batch was finished before the job began")
        before = self.account.standing.held
        counts = self.coordinator.finish(decision, records)
        sizes = None if self._here is None else self._here.committed(self.commit)
        self.account.add(self.commit, counts, records, sizes)
        self.account.decide(self._silence.decisions())
        if self._balancer is not None:
            self.account.decide([*self._ended_tracks(), *self._balancer.decisions()])
        if self._resizer is not None:
            self.account.decide(self._resizer.decisions())
        if self._spiller is not None:
            self._look_at_spilling(decision, counts, records)
        elif self.home.keeps or sizes is None:
            self._largest = max(record.held.bytes for record in records)
            if self._memory is not None and counts.rows_used >= ENOUGH:
                self.most_rows = self._fitting(counts.rows_used, IN_STATE * max(record.bytes_in for record in records))
        else:
            self._largest = max(size.bytes for size in sizes)
            if self._memory is not None and counts.rows_in:
                added = sum(record.held.bytes for record in records) - before.bytes
                self.most_rows = self._fitting(counts.rows_in, added / self.home.slots)
        return counts

    def _look_at_spilling(self, decision: BatchDecision, counts: Counts, records: Sequence[Record]) -> None:
        assert self._spiller is not None
        self._largest = max(record.spillable.stays for record in records)
        self.account.decide(self._spiller.decisions())
        added = max(record.spillable.added for record in records)
        if added > 0 and counts.rows_used > 0:
            self._added = added if counts.rows_used >= ENOUGH else 0
        self._size_batches(decision, counts.rows_used, added)

    def _ended_tracks(self) -> list[Decision]:
        before, after = self.commit.slot_map, self.commit.next_map
        return [] if before is None or after is None else ended_tracks(before, after)

    def _size_batches(self, decision: BatchDecision, rows: int, added: int) -> None:
        """Decide how many rows a batch may have, after one of this many rows that took so many bytes in a slot. Rows of
        cold groups are not stored, but a batch should fit as if they were: their groups come back."""
        warm = 1 - len(decision.ledger.generations.cold) / self._groups
        if rows > 0 and added > 0 and warm >= WARM:
            self.most_rows, self._guessed = self._fitting(rows, added / warm), False
        elif self._guessed and self.commit.log:
            size = IN_STATE * sum(file.bytes for file in self.commit.log) / self.home.slots
            self.most_rows = self._fitting(sum(file.rows for file in self.commit.log), size)

    def _fitting(self, rows: int, size: float) -> int:
        assert self._memory is not None
        return fitting(rows, size, self._memory)

    def check_memory(self) -> None:
        """Raises JobError if the largest slot takes more than the setting `memory`; where groups can leave memory, if
        the rest of the slot does, or the rows of one batch."""
        if self._fixed_rows and self._memory is not None and self._added > self._memory:
            raise JobError(
                f"the rows of a batch take {size_text(self._added)} in a slot, more than"
                f" memory={size_text(self._memory)}; set a larger memory, or batch_rows to at most {self.most_rows}"
            )
        several, stays = self.home.keeps or self.home.slots > 1, self.home.stays if self.home.keeps else ""
        check_memory(self._memory, self._largest, self.commit.counts.rows_in, of_slot=several, stays=stays)
