"""The batches of a job as a slot gets them, and what tests do with a slot: run one, run it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from eddyline.engine.slot import Slot
from eddyline.engine.watermarks import Watermarks
from eddyline.protocol.attach import close, open_slot, save
from eddyline.settings import Settings
from tests.support.jobs import Job, Row, batch_of, tuples


@dataclass(frozen=True)
class Step:
    """A batch as a slot gets it; the last one has no rows and ends the streams."""

    rows: dict[str, pa.RecordBatch]
    by_stream: dict[str, int | None]
    watermark: int | None
    newest: int | None
    last: bool = False


def steps_of(
    select: str,
    columns: Mapping[str, pa.Schema],
    lateness: int,
    tables: Mapping[str, Sequence[Row]],
    starts: Iterable[int],
    some_rows: Callable[[int], list[Row]],
) -> tuple[list[Step], list[Row]]:
    """The batches of a run, one for each start, and all rows that it must give."""
    streams = [name for name in columns if name not in tables]
    job = Job(select, Settings(plan="mjoin"), dict.fromkeys(streams, lateness), tables, **columns)
    watermarks, steps = Watermarks([s.stream for s in job.query.sources if s.stream.time]), []
    for start in starts:
        rows = {name: some_rows(start) for name in streams}
        job.feed(**rows)
        watermarks.finish_batch({n: max(r[0] for r in some) for n, some in rows.items() if some}, ())
        fed = {name: batch_of(columns[name], some) for name, some in rows.items()}
        steps.append(Step(fed, watermarks.by_stream, watermarks.query, watermarks.newest))
    assert job.engine.counts.rows_late == 0
    steps.append(Step({}, {}, None, watermarks.newest, last=True))
    return steps, job.expected()


def with_tables(slot: Slot, tables: Mapping[str, pa.RecordBatch]) -> Slot:
    """With its tables, if it is new."""
    if slot.version == 0 and tables and not slot.state_rows:
        for name, rows in tables.items():
            slot.feed(name, rows)
        slot.executor.take_in()
        slot.commit(0)
    return slot


def run(slot: Slot, step: Step) -> list[Row]:
    """One batch, neither committed nor wound back."""
    for name, rows in step.rows.items():
        if rows.num_rows:
            slot.feed(name, rows)
    if step.last:
        slot.end(step.newest)
    else:
        slot.advance(step.by_stream, step.watermark)
    return tuples(slot.drain())


def run_twice(slot: Slot, step: Step) -> list[Row]:
    """One batch, which is run, wound back, run again with the same rows, and committed."""
    once = run(slot, step)
    run_again(slot, step, once)
    slot.commit(slot.version + 1)
    return once


def reopened(slot: Slot, folder: Path) -> Slot:
    """Saved, closed and opened again, as by the next process."""
    assert save(slot)
    close(slot)
    return open_slot(slot.query, slot.settings, str(folder), tuning=slot.tuning)


def run_again(slot: Slot, step: Step, once: list[Row]) -> None:
    """Wound back and run again it gives the same rows."""
    slot.wind_back()
    assert run(slot, step) == once
