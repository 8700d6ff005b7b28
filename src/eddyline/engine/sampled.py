"""Samples of SteMs for the planner: how many different values rows have, and for how many combinations a grouped tuple
stands."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eddyline.bound.expr import Expr
from eddyline.bound.group_ids import group_ids, plain
from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe
from eddyline.routing.eddy import Eddy
from eddyline.state.stem import SteM

SAMPLED = 4096
"""Rows or tuples in a sample."""


def distinct(stem: SteM, exprs: Sequence[Expr]) -> float:
    """Estimate how many different combinations of values the rows of a source have, from a sample. A value that occurs
    once in the sample stands for several others (the estimator of Charikar and others, 2000)."""
    live = stem.held
    if not exprs or not live:
        return 1.0
    taken = min(live, SAMPLED)
    rows = stem.rows.min_live + np.arange(taken) * live // taken
    keys = stem.layout.keys
    values = [stem.rows.key_parts(e, rows) if e in keys else plain(stem.rows.gather(e, rows)) for e in exprs]
    ids, count = group_ids(values, taken)
    once = int((np.bincount(ids) == 1).sum())
    return float(count - once + once * math.sqrt(live / taken))


def mean_weights(plan: Plan, stems: Sequence[SteM]) -> dict[int, float]:
    """For each SteM whose tuples have weights, by number: the mean weight of the tuples built last."""
    found = {}
    for number in plan.grouped:
        stem = stems[number] if number < len(stems) else None
        if stem is not None and stem.rows.carried is not None and stem.held:
            last = np.arange(max(stem.rows.min_live, stem.built - SAMPLED), stem.built)
            found[number] = stem.rows.carried.mean_weight(last)
    return found


def combinations(eddy: Eddy, stems: Sequence[SteM]) -> dict[tuple[int, int], tuple[float, float]]:
    """For each probe, as (span, span of the SteM): for how many combinations a probing tuple stands, and a found one.
    Empty if no tuple stands for several."""
    weights, found = mean_weights(eddy.plan, stems), dict[tuple[int, int], tuple[float, float]]()
    for entry in eddy.routes.entries.values() if weights else ():
        span, operator = entry.signature[0], eddy.plan.operator(entry.signature)
        parts = zip(operator.stems, operator.spans, strict=True)
        asks = math.prod(weights.get(stem, 1.0) for stem, own in parts if not own & ~span)
        for traffic in entry.steps:
            if isinstance(traffic.step, Probe):
                found[span, traffic.step.span] = asks, weights.get(traffic.step.target, 1.0)
    return found
