"""Draws random workloads and limits for the experiments, acceptance bars and tests of the optimizer.

As in section 8.2 of the dissertation, the rates of streams lie within a factor of 100, and the joins among streams are
drawn. The dissertation draws selectivities uniformly from (0, 1) whatever the rates. Each join then multiplies the
tuples by tens, and for more than a few streams no plan is within any limits. We draw them so that a tuple finds between
a fifth of a match and five matches. The dissertation does not give its limits; ours are shares of what the multi-way
join needs: mostly less CPU, and always at least as much memory. So the multi-way join itself seldom qualifies, and most
settings need a hybrid tree, if any plan qualifies.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from random import Random

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS, StepCosts
from eddyline.optimizer.plans import ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import mjoin_shape
from eddyline.optimizer.workload import Access, JoinEdge, SourceLoad, Workload

RATES = (100.0, 10_000.0)
WINDOWS = (5.0, 10.0, 30.0)
FAN_OUTS = (0.2, 5.0)
EXTRA_EDGES = 0.15
"""The probability of an edge for a pair that the spanning tree does not join."""
CPU_SHARES = (0.4, 1.2)
MEMORY_SHARES = (1.0, 3.0)


@dataclass(frozen=True)
class DrawnSetting:
    """A workload and the limits for its plan."""

    workload: Workload
    limits: ResourceLimits


def tree_edges(rng: Random, sources: int) -> list[tuple[int, int]]:
    """An acyclic join graph."""
    return [(rng.randrange(i), i) for i in range(1, sources)]


def star_edges(rng: Random, sources: int) -> list[tuple[int, int]]:
    """A star: one source in the centre, joined with all others."""
    centre = rng.randrange(sources)
    return [(centre, i) for i in range(sources) if i != centre]


def any_edges(rng: Random, sources: int) -> list[tuple[int, int]]:
    """A connected join graph, often with cycles."""
    edges = tree_edges(rng, sources)
    others = [(j, i) for i in range(sources) for j in range(i) if (j, i) not in edges]
    return edges + [pair for pair in others if rng.random() < EXTRA_EDGES]


def workload(rng: Random, sources: int, edges: list[tuple[int, int]]) -> Workload:
    """Streams that are joined by keys, with drawn rates, windows and selectivities."""
    drawn = tuple(SourceLoad.stream(rng.uniform(*RATES), rng.choice(WINDOWS)) for _ in range(sources))
    return Workload(drawn, tuple(_edge(rng, drawn, left, right) for left, right in edges))


def _edge(rng: Random, sources: tuple[SourceLoad, ...], left: int, right: int) -> JoinEdge:
    rows = (sources[left].rows * sources[right].rows) ** 0.5
    return JoinEdge(left, right, min(1.0, _log_uniform(rng, *FAN_OUTS) / rows))


def wild(rng: Random, edges: list[tuple[int, int]], sources: int) -> Workload:
    """A workload of any kind: tables, small and large sources, ranges and lists, shared indexes."""

    def source() -> SourceLoad:
        size = rng.uniform(8, 400)
        if rng.random() < 0.2:
            return SourceLoad.table(_log_uniform(rng, 1, 1e5), size)
        return SourceLoad.stream(_log_uniform(rng, 0.1, 1e4), _log_uniform(rng, 0.5, 600), size)

    def edge(left: int, right: int) -> JoinEdge:
        access = rng.choice((Access.HASH, Access.HASH, Access.HASH, Access.RANGE, Access.LIST))
        shared = (rng.randrange(3), rng.randrange(3)) if rng.random() < 0.5 else None
        return JoinEdge(left, right, _log_uniform(rng, 1e-5, 1), access, shared)

    return Workload(tuple(source() for _ in range(sources)), tuple(edge(*pair) for pair in edges))


def setting(rng: Random, sources: int, costs: StepCosts = DEFAULTS) -> DrawnSetting:
    """A workload with limits."""
    drawn = workload(rng, sources, any_edges(rng, sources))
    mjoin = Pricing(CostModel(drawn, costs)).cost(mjoin_shape(sources))
    cpu = mjoin.cpu * _log_uniform(rng, *CPU_SHARES)
    return DrawnSetting(drawn, ResourceLimits(cpu, mjoin.memory * _log_uniform(rng, *MEMORY_SHARES)))


def _log_uniform(rng: Random, least: float, most: float) -> float:
    return exp(rng.uniform(log(least), log(most)))
