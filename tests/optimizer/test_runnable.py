"""The priced orders are those that the engine can run: they have the same steps as the plan."""

from __future__ import annotations

import pytest

from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.optimizer import Optimizer, StemContents
from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe
from eddyline.settings import Settings
from tests.support.jobs import bound
from tests.support.plan_world import GROUPED, QUERIES, W, query

CROSS = {
    "a product": f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.k = b.k",
    "by time": f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.ts < b.ts AND a.x < c.x",
    "over three": f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.x + b.x < c.x AND a.k = b.k",
    "nothing": f"SELECT a.x FROM a {W}, b {W}, c {W}",
}


@pytest.mark.parametrize("name", [*QUERIES, *GROUPED, *CROSS])
def test_the_steps_of_the_engine_are_those_that_are_priced(name: str) -> None:
    select = bound(CROSS[name], None, (), **dict.fromkeys("abc", "k x")) if name in CROSS else query(name)
    plan, sources = Plan(select, tables_first=False), len(select.sources)
    optimizer = Optimizer(plan, Settings(), lambda: 0.0)
    model = CostModel(optimizer.workload([StemContents(10, 8.0)] * sources), DEFAULTS)
    for reached in range(1, (1 << sources) - 1):
        missing = [1 << s for s in range(sources) if not reached >> s & 1]
        offered = {step.span for step in plan.steps((reached, 0)) if isinstance(step, Probe)}
        assert {missing[number] for number in model.runnable(reached, missing)} == offered
