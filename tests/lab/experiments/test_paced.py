"""Paced runs and the four sets of plans: what follows from what was measured. Nothing here is timed."""

from __future__ import annotations

import pytest

from lab.experiments import plan_sets
from lab.experiments.paced import MeasuredBatch, most_bytes, need, paced, run


def _batches(cpu: float, count: int = 10, grow: int = 10) -> list[MeasuredBatch]:
    return [MeasuredBatch(n, 100, cpu, 50, 10 * n, grow * n) for n in range(1, count + 1)]


def test_a_plan_that_keeps_up_has_one_batch_in_its_queue() -> None:
    seen = paced(_batches(0.5), 1.0, 1000, 10)
    assert [moment.queued for moment in seen] == [100] * 10
    assert [moment.results for moment in seen] == [50 * n for n in range(10)]


def test_a_plan_that_needs_twice_the_cpu_falls_behind() -> None:
    seen = paced(_batches(2.0), 1.0, 1000, 10)
    assert seen[-1].results == round(50 * 9 / 2)
    assert seen[-1].queued == 100 + 100 * 9 // 2
    assert seen[-1].state_rows == 10 * 4, "what it holds is what it has done"


def test_a_plan_ends_where_memory_does() -> None:
    seen = paced(_batches(0.0), 1.0, 55, 10)
    assert [moment.state_bytes for moment in seen] == [10, 20, 30, 40, 50, 60]
    assert most_bytes(_batches(0.0)) == 100


def test_what_a_plan_needs_is_measured_with_full_windows() -> None:
    batches = [*_batches(9.0, 5), *(MeasuredBatch(n, 100, 0.5, 50, 10, 10) for n in range(6, 11))]
    assert need(batches, 5 / 1.2) == pytest.approx(0.5)


@pytest.mark.parametrize("number", plan_sets.SETS)
def test_streams_have_the_rates_and_selectivities_of_the_table(number: int) -> None:
    of_set, join = plan_sets.SETS[number], plan_sets._join(number, quick=True)
    for name, rate in zip("ABCD", of_set.rates, strict=False):
        rows = rate * of_set.scale * plan_sets.QUICK * join.seconds
        assert join.data[name].num_rows == pytest.approx(rows, abs=5 * rows**0.5)
    for (left, right), share in zip(join.edges, of_set.selectivities, strict=True):
        keys = join.data["ABCD"[left]].column("r").to_numpy(), join.data["ABCD"[right]].column("l").to_numpy()
        assert ((keys[0][:, None] + keys[1]) % 10000 < 10000 * share).mean() == pytest.approx(share, rel=0.2)


def test_all_plans_of_a_run_see_all_rows() -> None:
    join = plan_sets._join(1, quick=True)
    runs = [run(join, plan, 0.5) for plan in ("mjoin", "((A B) C)")]
    rows = sum(batch.num_rows for batch in join.data.values())
    assert [sum(batch.rows for batch in done) for done in runs] == [rows, rows]
    assert sum(b.results for b in runs[0]) == sum(b.results for b in runs[1]) > 0
    assert most_bytes(runs[0]) < most_bytes(runs[1])
