"""The choice of each algorithm, as in tests/optimizer/fixtures/plans.txt.

The file holds blocks: a workload, a line `---`, the answers. A workload has a line of streams (alias, rows per second,
window in seconds) and tables (alias, `table`, rows), a line of edges (selectivity, and the access if it is not hash),
and a line of limits as shares of what the multi-way join needs. After a change of the algorithms, run

    EDDYLINE_GOLDEN=write pytest tests/optimizer/test_fixtures.py

and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel, bits
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.exhaustive import exhaustive
from eddyline.optimizer.min_state import min_state
from eddyline.optimizer.mjoin_ordering import mjoin_ordering
from eddyline.optimizer.plans import Cost, PricedPlan, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import mjoin_shape, tree_of
from eddyline.optimizer.state_removal import state_removal
from eddyline.optimizer.state_selection import state_selection
from eddyline.optimizer.strategies import bjtree_init, mjoin_init
from eddyline.optimizer.workload import Access, JoinEdge, SourceLoad, Workload
from tests.support.drawn import base

FILE = Path(__file__).parent / "fixtures" / "plans.txt"
RULE, ANSWER = "=" * 100, "---"


def blocks() -> list[tuple[str, str]]:
    parts = FILE.read_text(encoding="utf-8").strip("\n").split(f"\n{RULE}\n")
    return [(workload, answer) for workload, _, answer in (part.partition(f"\n{ANSWER}\n") for part in parts)]


def read(text: str) -> tuple[list[str], CostModel, ResourceLimits]:
    """The aliases, the model and the limits of a workload."""
    sources_line, edges_line, limits_line = (line for line in text.splitlines() if not line.startswith("#"))
    words = [source.split() for source in sources_line.split(", ")]
    aliases = [word[0] for word in words]
    sources = tuple(
        SourceLoad.table(float(last)) if first == "table" else SourceLoad.stream(float(first), float(last))
        for _, first, last in words
    )
    edges = []
    for edge in edges_line.split(", "):
        pair, selectivity, *access = edge.split()
        left, right = (aliases.index(alias) for alias in pair.split("-"))
        edges.append(JoinEdge(left, right, float(selectivity), Access[access[0].upper()] if access else Access.HASH))
    model = CostModel(Workload(sources, tuple(edges)), DEFAULTS)
    mjoin = Pricing(model).cost(mjoin_shape(model.size))
    _, cpu, _, memory = limits_line.split()
    return aliases, model, ResourceLimits(mjoin.cpu * float(cpu), mjoin.memory * float(memory))


def answer_to(text: str) -> str:
    aliases, model, limits = read(text)
    pricing = Pricing(model)
    start, binary = mjoin_shape(model.size), min_state(Pricing(model))
    reference = pricing.cost(start)

    def costs(cost: Cost) -> str:
        return f"cpu {cost.cpu / reference.cpu:.3f} memory {cost.memory / reference.memory:.3f}"

    def plan(name: str, planned: PricedPlan) -> str:
        verdict = "" if limits.allow(planned.cost) else ", not qualified"
        return f"{name}: {planned.tree.text(aliases)} {costs(planned.cost)}{verdict}"

    orders = mjoin_ordering(model, base(model.size)).orders
    lines = [
        "mjoin-ordering: " + ", ".join(f"{_text((s,), aliases)} > {_text(o, aliases)}" for s, o in orders.items()),
        f"min-state: {tree_of(binary).text(aliases)} {costs(pricing.cost(binary))}",
        *(f"state-selection: {tree_of(s).text(aliases)} {costs(c)}" for s, c in state_selection(pricing, start)),
        *(f"state-removal: {tree_of(s).text(aliases)} {costs(c)}" for s, c in state_removal(pricing, binary)),
        plan("mjoin-init", mjoin_init(Pricing(model), limits)),
        plan("bjtree-init", bjtree_init(Pricing(model), limits)),
        *(plan("exhaustive", found) for found in exhaustive(Pricing(model, best_ordering), limits)),
    ]
    return "\n".join(lines)


def _text(spans: Sequence[int], aliases: Sequence[str]) -> str:
    return " ".join(aliases[i] for span in spans for i in bits(span))


if os.environ.get("EDDYLINE_GOLDEN") == "write":
    FILE.write_text(
        f"\n{RULE}\n".join(f"{workload}\n{ANSWER}\n{answer_to(workload)}" for workload, _ in blocks()) + "\n",
        encoding="utf-8",
    )


@pytest.mark.parametrize(("workload", "answer"), blocks())
def test_answer(workload: str, answer: str) -> None:
    assert answer_to(workload) == answer


def test_there_are_enough() -> None:
    assert len(blocks()) >= 8
    assert len({workload for workload, _ in blocks()}) == len(blocks())
