"""A slot's turn in a batch: the same in a Spark task and in a simulation.

    the state as of the last commit -> feed -> advance -> results, log and small state to files -> leave the state

The state is that in the arena, if it is of the history that the decision begins at, or was left by a batch between that
and the one before: then it is wound back or committed. Where there is none, or one of any other history, it is made
again from the log. Files have names of their own for every attempt; the record that is returned
names them, and only if the driver commits it do they count. The last thing is to leave the state: a turn that fails
before leaves none, and whoever comes next makes it again.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from eddyline.engine import attach
from eddyline.engine.coordinator import COMBINED, Decision, Record
from eddyline.engine.intake import event_times
from eddyline.engine.parcel import Parcel, as_shipment
from eddyline.engine.partial import combine
from eddyline.engine.slot import Slot
from eddyline.engine.split import Split
from eddyline.engine.watermarks import Watermarks
from eddyline.errors import JobError
from eddyline.faults import reach
from eddyline.plan.bounds import FOREVER
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.plan.tree import shape
from eddyline.query.evaluate import ErrorCount
from eddyline.query.model import Query, WindowKind
from eddyline.routing.gathered import snapshot
from eddyline.routing.report import Report, look
from eddyline.settings import Settings, size_text
from eddyline.state.arena import remove
from eddyline.state.log.commits import LOG, SMALL, Checkpoint, LogFile
from eddyline.state.log.segment import written
from eddyline.state.log.store import Store

Stage = Callable[[str, str, Sequence[pa.RecordBatch]], str]
"""(sink, name, rows) -> the file that has them; none if nobody wants them."""

RESULTS = "results"


class Keeper(Protocol):
    """Keeps the state of slots between their turns."""

    def open(self, number: int) -> Slot:
        """The slot as it was left, or an empty one at version 0."""

    def leave(self, number: int, slot: Slot) -> None:
        """The turn is over."""

    def drop(self, number: int, slot: Slot) -> None:
        """The turn failed: the state is not to be used."""


class Arenas:
    """In arenas on the host, none larger than `limit`: the next turn may be taken by another process."""

    def __init__(self, folder: str, make: Callable[[str, int], Slot], limit: int | None) -> None:
        self._folder, self._make, self._limit = folder, make, limit

    def open(self, number: int) -> Slot:
        return self._make(f"{self._folder}/{number}", number)

    def leave(self, number: int, slot: Slot) -> None:
        try:
            size = slot.arena.bytes
            if self._limit is not None and size > self._limit:
                raise JobError(
                    f"slot {number} takes {size_text(size)}, more than arena_limit={size_text(self._limit)};"
                    " a larger limit, more slots or smaller windows would do"
                )
            attach.save(slot)
        finally:  # without its lock nobody could come next
            attach.close(slot)

    def drop(self, number: int, slot: Slot) -> None:
        attach.close(slot)
        with contextlib.suppress(JobError):
            remove(f"{self._folder}/{number}")


class InMemory:
    """In this process."""

    def __init__(self, make: Callable[[], Slot]) -> None:
        self._slots: dict[int, Slot] = {}
        self._make = make

    def open(self, number: int) -> Slot:
        return self._slots.pop(number, None) or self._make()

    def leave(self, number: int, slot: Slot) -> None:
        self._slots[number] = slot

    def drop(self, number: int, slot: Slot) -> None:
        pass


class Home:
    """What is the same in every turn. `arenas` is the folder of the arenas of this job on this host, None to keep slots
    in this process."""

    def __init__(
        self, query: Query, settings: Settings, slots: int, checkpoint: Checkpoint, arenas: str | None, stage: Stage
    ) -> None:
        self.query, self.settings, self.slots, self.checkpoint, self.stage = query, settings, slots, checkpoint, stage
        self.plan = Plan(query, shape(settings.plan, [s.alias for s in query.sources]))
        self.split = Split(self.plan, partition(self.plan, slots, settings.groups), logged=True)
        self.keeper: Keeper = (
            InMemory(self._make) if arenas is None else Arenas(arenas, self._attach, settings.arena_limit)
        )

    def _make(self) -> Slot:
        return Slot(self.query, self.settings, partial=self.partial)

    def _attach(self, folder: str, number: int) -> Slot:
        identity = f"slot {number} of {self.slots}, {self.settings.groups} groups"
        return attach.open_slot(self.query, self.settings, folder, partial=self.partial, identity=identity)

    @property
    def partial(self) -> bool:
        """Whether slots give partial aggregates: always where there are several, so that cells may be in any."""
        return self.query.group is not None and self.slots > 1

    @property
    def has_small_state(self) -> bool:
        """Whether there is state that rows cannot tell."""
        return self.query.group is not None or any(s.window.kind is WindowKind.ROWS for s in self.query.sources)

    def watermarks(self, saved: Mapping[str, Any] | None = None) -> Watermarks:
        """The watermarks of the query's streams."""
        streams = {s.stream.name: s.stream for s in self.query.sources if not s.stream.is_table}
        made = Watermarks(list(streams.values()))
        if saved is not None:
            made.restore(saved)
        return made

    def horizon(self, advanced: Mapping[str, Any]) -> dict[str, int]:
        """By stream the time before which no row is needed any more, when slots have advanced so far (a commit's
        `advanced`)."""
        return horizon(self.plan, self.watermarks(advanced), advanced.get("counted", {}))

    def horizon_after(
        self, decision: Decision, newest: Mapping[str, int], counted: Mapping[str, int | None]
    ) -> dict[str, int]:
        """By stream the time before which no row is needed once a batch is committed that has rows of these times: its
        watermarks are then at least what these make of them. Where rows wait for the watermark, those of the batch are
        all needed."""
        watermarks = self.watermarks(decision.watermarks)
        if not any(s.window.kind is WindowKind.ROWS for s in self.query.sources):
            watermarks.finish_batch(newest, ())
        return horizon(self.plan, watermarks, counted)


def horizon(plan: Plan, watermarks: Watermarks, counted: Mapping[str, int | None]) -> dict[str, int]:
    """By stream the time before which no row is needed any more, when slots have advanced to these watermarks. A row is
    needed while it waits for the watermark, and then as long as a row to come may join with it: what time bounds say
    and, for a source with a ROWS window, what it has `counted`."""
    sources, by_stream = plan.query.sources, watermarks.by_stream
    in_order = any(s.window.kind is WindowKind.ROWS for s in sources)
    by_source = [
        FOREVER if s.stream.is_table else watermarks.query if in_order else by_stream[s.stream.name] for s in sources
    ]
    found: dict[str, int] = {}
    for number, source in enumerate(sources):
        if not source.stream.is_table:
            least = plan.graph.bounds.horizon(number, by_source)
            if in_order:
                gone = counted.get(str(number))
                least = least if gone is None else max(least, gone)
                least = -FOREVER if watermarks.query is None else min(least, watermarks.query)
            found[source.stream.name] = min(least, found.get(source.stream.name, FOREVER))
    return found


@dataclass(frozen=True)
class Turn:
    """What a turn gave: the record, and partial results that others put together."""

    record: Record
    partial: list[pa.RecordBatch]


def take_turn(home: Home, decision: Decision, number: int, attempt: str, parcels: Iterable[Parcel]) -> Turn:
    """The turn of slot `number`; `attempt` is a name that no other attempt has."""
    slot = _slot(home, decision, number)
    try:
        turn = _work(home, decision, number, f"{decision.batch:08}-{number}-{attempt}", parcels, slot)
        reach("turn: before the state is left")
    except BaseException:
        home.keeper.drop(number, slot)
        raise
    home.keeper.leave(number, slot)
    reach("turn: the state is left")
    return turn


def _work(home: Home, decision: Decision, number: int, name: str, parcels: Iterable[Parcel], slot: Slot) -> Turn:
    before, counts, newest = slot.errors.count, dict[str, int](), dict[str, int]()
    begun, read = _seen(slot), Counter[str]()
    slot.replan()
    logged: dict[str, list[pa.RecordBatch]] = {}
    staged: dict[str, list[str]] = {}
    for parcel in parcels:
        if parcel.kind == "rows":
            shipment, log = as_shipment(parcel, number)
            slot.receive(shipment)
            if log.num_rows:
                logged.setdefault(shipment.stream, []).append(log)
        elif parcel.kind == "counts":
            for what, count in parcel.head["counts"].items():
                counts[what] = counts.get(what, 0) + count
            for stream, when in parcel.head["newest"].items():
                newest[stream] = max(when, newest.get(stream, when))
            read.update(parcel.head.get("read", {}))
        else:
            sink = f"{parcel.kind} {parcel.head['stream']}"
            files = staged.setdefault(sink, [])
            file = home.stage(sink, f"{name}-{sink.replace(' ', '-')}-{len(files)}", [parcel.batch])
            files += [file] if file else []
    reach("turn: everything was received")
    watermarks = home.watermarks(decision.watermarks)
    if decision.kind == "end":
        slot.end(watermarks.newest)
    else:
        slot.advance(watermarks.by_stream, watermarks.query)
    results = [batch for batch in slot.drain() if batch.num_rows]
    reach("turn: results are there")
    partial: list[pa.RecordBatch] = []
    if home.partial:
        partial = results
    elif results:
        staged[RESULTS] = [home.stage(RESULTS, f"{name}-results", results)]
        counts["rows_out"] = sum(batch.num_rows for batch in results)
    counts["expression_errors"] = counts.get("expression_errors", 0) + slot.errors.count - before
    reach("turn: results are staged")
    merged = tuple(decision.merge.get(str(number), ()))
    log_file = _log(home, decision, number, name, logged, slot.counted())
    reach("turn: rows are logged")
    small = _small(home, slot, name) if home.has_small_state else None
    reach("turn: small state is written")
    slot.batch_done = (decision.before, decision.after)
    state = {"rows": slot.peak_rows, "bytes": slot.peak_bytes, "reroute": slot.eddy.decisions.counts["reroute"]}
    told, error, did = slot.counted(), slot.errors.first, snapshot(_seen(slot).since(begun))
    if did and slot.planner is not None and (estimate := slot.planner.estimate(slot.plan, slot.stems)) is not None:
        did["estimated"] = estimate.as_json()
    more = told, error, state, dict(read), did, slot.course
    return Turn(Record(number, counts, staged, newest, log_file, merged, small, *more), partial)


def _seen(slot: Slot) -> Report:
    return look(slot.query, slot.eddy, slot.built, 0.0, slot.input_batch.rows)


def put_together(home: Home, decision: Decision, name: str, partial: Sequence[pa.RecordBatch]) -> Record:
    """Finish the partial results of all slots for some groups."""
    errors = ErrorCount()
    reach("together: before cells are combined")
    results = [batch for batch in combine(home.query, partial, errors) if batch.num_rows] if partial else []
    staged = {RESULTS: [home.stage(RESULTS, f"{decision.batch:08}-{name}-results", results)]} if results else {}
    counts = {"rows_out": sum(batch.num_rows for batch in results), "expression_errors": errors.count}
    reach("together: results are staged")
    return Record(COMBINED, counts, staged, first_error=errors.first)


def _slot(home: Home, decision: Decision, number: int) -> Slot:
    """The slot as of the commit before the batch: what was left there is between two histories (of the commits before
    and after some batch). Version n is the state after batches 0..n-1."""
    slot = home.keeper.open(number)
    try:
        before, after = slot.batch_done or (None, None)
        if after == decision.before:
            slot.commit(decision.batch)
        elif before == decision.before:
            slot.wind_back()
        else:
            if slot.version or slot.batch_done:
                home.keeper.drop(number, slot)
                slot = home.keeper.open(number)
            restore(home, slot, number, decision.batch)
        slot.batch_done = None
        return slot
    except BaseException:
        home.keeper.drop(number, slot)
        raise


def restore(home: Home, slot: Slot, number: int, version: int) -> None:
    """Make the state of a version from the log."""
    if version == 0:
        return
    commit = home.checkpoint.commit_of(version - 1)
    split = Split(home.plan, home.split.partitioning)
    for file in commit.log:
        segment = home.checkpoint.segment(file.name)
        for stream in segment.names:
            for batch in segment.batches(stream):
                for shipment in split.split_table(stream, batch):
                    if shipment.slot == number:
                        slot.receive(shipment)
    reach("turn: rows of the log are received")
    advanced = home.watermarks(commit.advanced)
    _restore_small(home, slot, number, commit.small)
    slot.loaded(advanced.by_stream, advanced.query, version)
    course = commit.plans.get(str(number))
    if course and home.settings.plan == "auto" and len(commit.plans) == home.slots:
        slot.resume(course)


def _restore_small(home: Home, slot: Slot, number: int, files: Sequence[str]) -> None:
    """Each slot its own small state, if there are as many as there were; else the first has the cells of all."""
    segments = [home.checkpoint.segment(name) for name in files]
    if not segments:
        return
    mine = [s for s in segments if s.meta["slot"] == number] if len(segments) == home.slots else segments
    if mine is segments and number:
        mine = []
    batches = [(name, batch) for s in mine for name in s.names for batch in s.batches(name)]
    slot.restore_small_state(segments[0].meta["numbers"], batches)


def _log(
    home: Home,
    decision: Decision,
    number: int,
    name: str,
    logged: dict[str, list[pa.RecordBatch]],
    counted: Mapping[str, int | None],
) -> LogFile | None:
    """The rows that came, and those of the segments that are made one with them, as far as they are still needed when
    the batch is committed."""
    times = {s.stream.name: s.stream.time for s in home.query.sources}
    newest = {
        stream: max(int(event_times(batch.column(time)).max()) for batch in batches)
        for stream, batches in logged.items()
        if (time := times[stream]) is not None
    }
    least = home.horizon_after(decision, newest, counted)
    for old in decision.merge.get(str(number), ()):
        segment = home.checkpoint.segment(old)
        for stream in segment.names:
            logged[stream] = [*segment.batches(stream), *logged.get(stream, ())]
    kept: dict[str, list[pa.RecordBatch]] = {}
    last: dict[str, int | None] = {}
    for stream, batches in logged.items():
        if (time := times[stream]) is not None:
            batches = [some for batch in batches if (some := _not_before(batch, time, least[stream])).num_rows]
        if batches:
            kept[stream] = batches
            last[stream] = None if time is None else max(int(event_times(b.column(time)).max()) for b in batches)
    if not kept:
        return None
    sections = [(stream, _alike(batches)) for stream, batches in kept.items()]
    home.checkpoint.store.write(f"{LOG}/{name}", *written(sections, {"slot": number}))
    rows = sum(batch.num_rows for batches in kept.values() for batch in batches)
    return LogFile(f"{LOG}/{name}", number, rows, last)


def _not_before(batch: pa.RecordBatch, time: str, least: int) -> pa.RecordBatch:
    """The rows that are not older; all, if that spares little: leaving some out is copying the others."""
    keep = event_times(batch.column(time)) >= least
    return batch if 2 * np.count_nonzero(keep) > keep.size else batch.filter(pa.array(keep))


def _alike(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """With one dictionary: they may differ from batch to batch, which a stream of batches cannot say."""
    if any(pa.types.is_dictionary(field.type) for field in batches[0].schema):
        batches = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return batches


def _small(home: Home, slot: Slot, name: str) -> str:
    numbers, batches = slot.small_state()
    sections: dict[str, list[pa.RecordBatch]] = {}
    for section, batch in batches:
        sections.setdefault(section, []).append(batch)
    meta = {"slot": int(name.split("-")[1]), "numbers": numbers}
    home.checkpoint.store.write(f"{SMALL}/{name}", *written(list(sections.items()), meta))
    return f"{SMALL}/{name}"


def checkpoint_at(root: str) -> Checkpoint:
    """The checkpoint in a folder, for those who only read and add."""
    return Checkpoint(Store(root))
