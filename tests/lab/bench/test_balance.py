"""Small versions of `bench balance`, and the harness of slots with a CPU each. No test depends on a time."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.errors import SettingError
from eddyline.protocol.record import Record
from lab.bench import balance
from lab.experiments import paced_slots
from lab.experiments.paced_slots import LM, MSLB, NEITHER, PTLB, Phase, SlotBatch, SlotJoin, SlotRun


def test_from_two_thirds_of_the_groups_in_one_slot_a_few_moves_are_enough() -> None:
    found = {result.metric: result for result in balance.skew()}
    assert found["least / most memory at first"].value < 0.4
    assert found["least / most memory"].ok and found["moves until then"].ok
    assert found["moves until then"].value >= 1


def test_results_are_the_same_with_moves_and_without() -> None:
    cost, rows, *_ = balance.hour(rows=300, batches=24, window=4)
    assert cost.metric.endswith("from 5 moves") and rows.value > 0


def test_the_cost_of_moves_does_not_depend_on_one_that_was_disturbed() -> None:
    more = [0.0] * 60
    for at in range(10, 50, 8):
        more[at] = 0.5
    more[18] = 90.0  # other work on the machine
    assert np.median(balance.move_costs(more, list(range(10, 50, 8)))) == 0.5


def test_a_group_moves_to_and_fro() -> None:
    results = balance.pause(rows=3000, rounds=2)
    assert results[0].bar == 200 and all(result.value > 0 for result in results)


def test_even_data_moves_nothing() -> None:
    assert balance.even(rows=300, batches=12)[-1].ok


def test_parts_have_names() -> None:
    with pytest.raises(SettingError, match="there is skew, hour, pause, even"):
        balance.run(part="all")


def _by_rows(record: Record) -> float:
    """CPU seconds that are the same on any machine."""
    return record.held.rows * 1e-4


def test_sides_of_an_uneven_job_have_the_same_results() -> None:
    phases = Phase(6.0, (400, 400, 8000)), Phase(10.0, (8000, 400, 400))
    join = SlotJoin(phases, window=4.0, keys=400, second_keys=10, batch=0.5)
    sides = NEITHER, LM, MSLB, PTLB
    ((neither, plans, moving, track),) = paced_slots.compared(join, sides, rounds=1, load=_by_rows)
    assert neither.digest == plans.digest == moving.digest == track.digest and neither.digest[0] > 1000
    assert not any(batch.moves for batch in (*neither.batches, *plans.batches))
    assert any(batch.moves for batch in moving.batches) and any(batch.moves for batch in track.batches)
    assert any(batch.on_track for batch in track.batches) and not any(batch.on_track for batch in moving.batches)


def test_a_batch_takes_as_long_as_its_slowest_slot() -> None:
    batches = SlotBatch((1.0, 3.0), 10, 5, 0, 0), SlotBatch((2.0, 1.0), 20, 5, 0, 0)
    run = SlotRun(NEITHER, batches, (30, 0))
    assert run.seconds == 5.0
    assert [run.results_at(at) for at in (1.5, 3.0, 4.0, 9.0)] == [5.0, 10.0, 20.0, 30.0]
