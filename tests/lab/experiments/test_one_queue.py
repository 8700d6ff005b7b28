"""The eddy with one queue: the same rows, each built just before its first probe, each step with a single tuple."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.routing_arrays import Traffic
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.streams import query_over, streams
from lab.experiments.one_queue import OneQueueEddy, one_queue
from lab.experiments.teddies import _steps

DATA = streams({"r": ["a"], "s": ["a", "b"], "t": ["b"]}, 120, 4, 1000)
SELECT = (
    "SELECT r.v AS x, s.v AS y, t.v AS z FROM r [RANGE 30 MILLISECONDS], s [RANGE 30 MILLISECONDS], "
    "t [RANGE 30 MILLISECONDS] WHERE r.a = s.a AND s.b = t.b"
)


def _results(engine: BatchDriver) -> Sequence[dict[str, float]]:
    found: list[pa.RecordBatch] = []
    for at in range(0, 120, 40):
        found += engine.batch([(name, batch.slice(at, 40)) for name, batch in DATA.items()]).results
    found += engine.end().results
    return sorted((row for batch in found for row in batch.to_pylist()), key=lambda row: tuple(row.values()))


@pytest.mark.parametrize("input_batch", [1, 7, 256])
def test_the_results_are_those_of_meta_queues(input_batch: int) -> None:
    settings = Settings(router="random", packet=1, input_batch=input_batch, reroute_every=1, plan="mjoin", check=True)
    query = query_over(DATA, SELECT)
    one, many = BatchDriver(query, settings), BatchDriver(query, settings)
    one_queue(one)
    rows = _results(many)
    assert len(rows) > 100
    assert _results(one) == rows
    assert isinstance(one.slot.executor.eddy, OneQueueEddy)
    steps = [traffic for e in one.slot.executor.eddy.routes.entries.values() for traffic in e.steps]
    assert sum(t.tuples for t in steps) == sum(t.calls for t in steps) == _steps(one)


@pytest.mark.parametrize("at_first_probe", [True, False])
def test_a_row_is_built_at_its_first_probe(at_first_probe: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """With meta-queues rows of an input batch are built together, so that some are there before they are the newest."""
    settings = Settings(router="random", packet=1, input_batch=256, reroute_every=1, plan="mjoin")
    engine = BatchDriver(query_over(DATA, SELECT), settings)
    if at_first_probe:
        one_queue(engine)
    newer: list[int] = []

    def step(self: Eddy, traffic: Traffic, packet: Packet) -> bool:
        for source, rows in packet.rows.items() if len(packet.rows) == 1 else ():
            newer.append(engine.slot.executor.built[source] - 1 - int(rows[0]))
        return took(self, traffic, packet)

    took = Eddy._step
    monkeypatch.setattr(Eddy, "_step", step)
    _results(engine)
    assert len(newer) == 3 * 120
    assert any(newer) is not at_first_probe
    assert engine.slot.executor.eddy.is_idle
