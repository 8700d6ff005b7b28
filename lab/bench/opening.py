"""What it costs to open a row of a group that moves, over what an arriving row costs: `BalanceTuning.open_cost`.

Two real slots hold the rows of a join of three streams. Then half of the groups of one slot move to the other, before a
batch without rows. The turns of that batch, less those of another batch without rows, are what the move costs: the
receiver reads and builds rows, the sender forgets them. An arriving row costs its share of the turns of its batch; how
much that is depends on the results of a row.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import DEFAULT
from eddyline.spill.accounts import TABLE
from lab.bench import Result
from lab.bench.ratio_joins import even, ratio_join
from lab.bench.spill_courses import AMPLE, PLAN
from lab.bench.stepped_job import ScriptedMap, SteppedJob

GROUPS, RANGE, BATCHES, ROWS, ROUNDS = 64, 40_000, 20, 20_000, 3
"""Rows are those of a batch, of each stream. In one tuple range a value comes as often as the join ratio says."""


def run() -> list[Result]:
    """Measure with few and with many results for each row."""
    found = []
    for ratio in (0.02, 0.1):
        rounds = [_round(ratio, seed) for seed in range(ROUNDS)]
        case = f"{median(results for _, _, results in rounds):.2g} results for each row"
        for metric, values in (
            ("opening a row over an arriving row", [opened for opened, _, _ in rounds]),
            ("forgetting a row over an arriving row", [forgotten for _, forgotten, _ in rounds]),
        ):
            found.append(Result(case, metric, median(values), "times"))
    return [*found, Result("tuning", "open_cost", DEFAULT.open_cost, "times")]


def _round(ratio: float, seed: int) -> tuple[float, float, float]:
    """What opening and forgetting a row cost, in arriving rows, and the results for each row."""
    join = ratio_join([ratio] * GROUPS, RANGE, even(BATCHES * ROWS, GROUPS), seed)
    settings, even_map = replace(PLAN, slots=2, groups=GROUPS, memory=AMPLE, balance="moving-state"), SlotMap(2, GROUPS)
    placer = ScriptedMap(even_map)
    with SteppedJob(join.query, settings, placer) as job:
        steps = [job.batch(rows) for rows in join.batches(ROWS)]
        warm = steps[BATCHES // 4 :]
        arriving = sum(sum(step.turns) for step in warm) / (3 * ROWS * len(warm))
        idle, costs = min(job.batch([]).turns), list[tuple[float, float]]()
        for to, receiver in ((even_map.moved(range(GROUPS // 4), to=1), 1), (even_map, 0)):
            placer.to = to
            job.batch([])  # it decides the move
            a_row = arriving * int(np.frombuffer(job.commit.moved, TABLE)["rows"].sum())
            turns = job.batch([]).turns
            costs.append(((turns[receiver] - idle) / a_row, (turns[1 - receiver] - idle) / a_row))
        made = sum(step.results for step in warm) / (3 * ROWS * len(warm))
    return median(opened for opened, _ in costs), median(forgotten for _, forgotten in costs), made
