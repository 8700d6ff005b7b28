"""What a slot does with its lookup tables. `look_up` (lookups.py) calls it in a batch, before `Slot.advance`. When a
slot is rebuilt, answers are read back from the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from eddyline.engine.lookups.answers import NewRows
from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request
from eddyline.engine.lookups.modules import AccessModules
from eddyline.engine.slot import Slot


class SlotLookups:
    """The lookups of a slot whose query has lookup tables."""

    def __init__(self, slot: Slot, access: AccessModules) -> None:
        self._slot, self._executor, self._access = slot, slot.executor, access

    def forget_answers(self, kept: Mapping[str, AnswersKept], now: float) -> bool:
        """Before anything else: evict answers of tables that are kept no longer. `now` is in seconds. Returns whether
        some are kept only because rows wait for others."""
        self._access.batch = self._slot.version
        return self._access.evict(kept, now, self._slot.watermark, self._executor.source_stems)

    def note_answers(self, now: float) -> None:
        """After the last answers of a batch."""
        self._access.note_answers(now, self._executor.source_stems)

    def process(self, query_watermark: int | None, ask: Callable[[Sequence[Request]], None]) -> None:
        """Join what was received or answered so far. `ask` gets what the tables are asked as a result, at once: they
        answer while the slot goes on. Complete tuples are gathered by `Slot.advance`: their rows stay until then."""
        access, executor = self._access, self._executor
        with self._slot.meter.counted(), access.outgoing.through(ask):
            access.seed()
            if not access.is_ranked:
                access.rank_again(executor.source_stems, executor.eddy.gather)
            self._slot.join(query_watermark)
            access.look()
        for decision in access.decisions:
            executor.eddy.decisions.add(replace(decision, at=sum(executor.built)))
        access.decisions.clear()

    @property
    def patience(self) -> float:
        """How many seconds the slot may wait for answers before `process` asks other access methods."""
        return min(table.competing.patience for table in self._access.tables.values())

    def answer(self, answers: Iterable[Answer]) -> None:
        """Take answers of tables, for `process`."""
        with self._slot.meter.counted():
            by_method: dict[tuple[str, int], list[Answer]] = {}
            for answer in answers:
                by_method.setdefault((answer.table, answer.method), []).append(answer)
            preferred = self._slot.preferred
            for (table, _), some in by_method.items():
                for new in self._access.answered(some):
                    rows = new.rows if preferred is None else preferred.in_order(table, new.rows)
                    self._store(table, replace(new, rows=rows))

    def begin_load(self, batch: int) -> None:
        """Before `Slot.load`: the rows of a batch are next, of those that the log has."""
        self._access.begin_load(batch, self._executor.source_stems)

    def load_answers(self, sections: Mapping[str, Sequence[pa.RecordBatch]]) -> None:
        """Take what the log has of the answers that this slot got in the batch."""
        for table, new in self._access.load(sections):
            self._store(table, new)
        self._access.end_load(sections, self._executor.source_stems)

    def _store(self, table: str, new: NewRows) -> None:
        stems, sources = self._executor.stems, self._access.tables[table].sources
        before = [stems[source].rows.stored for source in sources]
        self._slot.input.feed(table, new.rows)
        for source, first in zip(sources, before, strict=True):
            self._access.came(source, first, stems[source].rows.stored, new)
