"""What samples of SteMs tell the planner: how many different values rows have, and for how many combinations a tuple
stands that was put together of several."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eddyline.bound.expr import Expr
from eddyline.bound.group_ids import group_ids, plain
from eddyline.plan.plan import Plan, Probe
from eddyline.routing.eddy import Eddy
from eddyline.state.stem import SteM

SAMPLED = 4096
"""Rows or tuples that are looked at."""


def distinct(stem: SteM, exprs: Sequence[Expr]) -> float:
    """How many different combinations of values the rows of a source have: of a sample, and what that tells of all. A
    value that was met once in the sample counts for more of its kind (the estimator of Charikar and others, 2000)."""
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
    """By the number of a SteM whose tuples have weights: for how many combinations one stands, of those built last."""
    found = {}
    for number in plan.grouped:
        stem = stems[number] if number < len(stems) else None
        if stem is not None and stem.rows.carried is not None and stem.held:
            last = np.arange(max(stem.rows.min_live, stem.built - SAMPLED), stem.built)
            found[number] = stem.rows.carried.mean_weight(last)
    return found


def combinations(eddy: Eddy, stems: Sequence[SteM]) -> dict[tuple[int, int], tuple[float, float]]:
    """By probe, (span, span of the SteM): for how many combinations a tuple stands that asks, and one that is found.
    Nothing if no tuple stands for several."""
    weights, found = mean_weights(eddy.plan, stems), dict[tuple[int, int], tuple[float, float]]()
    for entry in eddy.routes.entries.values() if weights else ():
        span, operator = entry.signature[0], eddy.plan.operator(entry.signature)
        parts = zip(operator.stems, operator.spans, strict=True)
        asks = math.prod(weights.get(stem, 1.0) for stem, own in parts if not own & ~span)
        for traffic in entry.steps:
            if isinstance(traffic.step, Probe):
                found[span, traffic.step.span] = asks, weights.get(traffic.step.target, 1.0)
    return found
