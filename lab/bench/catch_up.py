"""`bench catch-up`: the cost of a slot's turn on a host that does not have its arena (docs/design/checkpoint.md).

A job with a checkpoint has filled the windows of a three-way join. Then a batch without rows is run twice: on the host
that has the state, by a slot that attaches to it, and on another host, by a slot that rebuilds the state from the log.
The difference is the price of the other host. With two slots each still reads the whole log, and keeps its share.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import pyarrow as pa

from eddyline.protocol.batch_decision import BatchDecision
from eddyline.protocol.coordinator import Coordinator
from eddyline.protocol.home import Home, checkpoint_at
from eddyline.protocol.outlet import Outlet
from eddyline.protocol.packing import Packer
from eddyline.protocol.parcel import Parcel
from eddyline.protocol.turn import take_turn
from eddyline.settings import Settings
from lab.bench import Result
from lab.bench.streams import Streams, query_over, streams

SIZES = (100_000, 1_000_000)
"""Rows of all streams in their windows."""
SLOTS = (1, 2)
BATCHES, ROUNDS = 4, 5
COLUMNS = {"a": ["a"], "b": ["a", "b"], "c": ["b"]}
SELECT = """SELECT a.v AS av, b.v AS bv, c.v AS cv FROM a [RANGE 1 HOUR], b [RANGE 1 HOUR], c [RANGE 1 HOUR]
            WHERE a.a = b.a AND b.b = c.b"""
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_log = logging.getLogger(__name__)


class _Nowhere:
    """A sink that ignores results, which are not measured."""

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        pass

    def forget_after(self, batch: int) -> None:
        pass


def run() -> list[Result]:
    """Measure small and large windows, with one slot and two."""
    return [result for slots in SLOTS for size in SIZES for result in _measured(size, slots)]


def _measured(size: int, slots: int) -> list[Result]:
    rows = size // len(COLUMNS)
    data = streams(COLUMNS, rows, 100 * rows, every=100)
    with TemporaryDirectory() as folder, TemporaryDirectory(dir=_MEMORY) as hosts:
        checkpoint = checkpoint_at(folder)
        checkpoint.open({"query": SELECT})
        settings, query = Settings(slots=slots), query_over(data, SELECT)

        def home(host: str) -> Home:
            return Home(query, settings, slots, checkpoint, f"{hosts}/{host}", _unstaged)

        here = home("here")
        coordinator = Coordinator(checkpoint, here, _Nowhere())
        for batch in range(BATCHES):
            _batch(here, coordinator, batch, data, rows)
        decision = coordinator.begin(BATCHES, "rows", BATCHES)
        assert decision is not None
        attached = [_turn(here, decision, f"here-{i}") for i in range(ROUNDS)]
        elsewhere = [_turn(home(f"host-{i}"), decision, f"host-{i}") for i in range(ROUNDS)]
        logged = sum(file.rows for file in coordinator.commit.log)
        state = here.keeper.open(0).state_rows
    extra = median(elsewhere) - median(attached)
    case = f"{logged:,} rows in the log, {slots} slot{'s' if slots > 1 else ''}"
    _log.info("%s: slot 0 holds %d rows", case, state)
    return [
        Result(case, "turn where its arena is", median(attached) * 1e3, "ms"),
        Result(case, "turn where it is not", median(elsewhere) * 1e3, "ms"),
        Result(case, "caught up", logged / extra, "rows of the log/s"),
        Result(case, "for 100,000 rows of the log", extra * 1e5 / logged * 1e3, "ms"),
    ]


def _unstaged(outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
    return []


def _batch(home: Home, coordinator: Coordinator, number: int, data: Streams, rows: int) -> None:
    decision = coordinator.begin(number, "rows", number)
    assert decision is not None
    packer = Packer(home, decision, 0)
    parcels: dict[int, list[Parcel]] = {slot: [] for slot in range(decision.slots)}
    for stream, batch in data.items():
        part = rows * number // BATCHES, rows * (number + 1) // BATCHES
        for slot, parcel in packer.rows(stream, batch.slice(part[0], part[1] - part[0])):
            parcels[slot].append(parcel)
    for slot, counts in packer.finish():
        parcels[slot].append(counts)
    records = [take_turn(home, decision, slot, "fill", mine).record for slot, mine in parcels.items()]
    coordinator.finish(decision, records)


def _turn(home: Home, decision: BatchDecision, attempt: str) -> float:
    begin = perf_counter()
    take_turn(home, decision, 0, attempt, ())
    return perf_counter() - begin
