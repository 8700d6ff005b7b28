"""Random workloads for the tests: Hypothesis draws the seed, and prints it when something fails."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from lab.experiments import draw

SEEDS = st.integers(0, 2**32)
GRAPHS = {"tree": draw.tree_edges, "star": draw.star_edges, "any": draw.any_edges}


def model(seed: int, sources: int, graph: str = "any", wild: bool = True) -> CostModel:
    rng = Random(seed)
    edges = GRAPHS[graph](rng, sources)
    drawn = draw.wild(rng, edges, sources) if wild else draw.workload(rng, sources, edges)
    return CostModel(drawn, DEFAULTS)


def base(sources: int) -> tuple[int, ...]:
    return tuple(1 << i for i in range(sources))
