"""With `router=fixed`, tuples probe sources in the written order until the optimizer has a better one; the results are
the same. The data is that of test_planner.py, where b matches hardly any a and many c; the query is written the other
way round."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from eddyline.bound.model import BoundQuery
from eddyline.engine.tuning import Tuning
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.protocol.attach import close, open_slot, save
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from tests.engine.test_planner import BATCH, COLUMNS, RATES, SECOND, W, batches, engine_of, expected, run_batch
from tests.support.jobs import Row, bound, tuples

C, B, A = 1, 2, 4
"""The spans of the sources, in the order of FROM."""


@cache
def written() -> BoundQuery:
    select = f"SELECT a.v AS p, b.v AS q, c.v AS r FROM c {W}, b {W}, a {W} WHERE a.x = b.x AND b.k = c.k"
    return bound(select, None, (), **COLUMNS)


FIXED = Tuning(optimizer=OptimizerTuning(costs=DEFAULTS))


def asked_first(engine: BatchDriver) -> dict[int, int]:
    """How many rows of b probed c first, and how many probed a first."""
    entry = engine.slot.executor.eddy.routes.entries[B, 0]
    return {traffic.after[0] ^ B: traffic.tuples for traffic in entry.steps}


def run(**settings: object) -> tuple[list[Row], list[dict[int, int]], BatchDriver]:
    engine, rows, asked = engine_of(written(), router="fixed", **settings), list[Row](), []
    for batch in batches():
        rows += tuples(engine.batch(batch).results)
        asked.append(asked_first(engine))
    return sorted(rows + tuples(engine.end().results), key=repr), asked, engine


def test_the_orders_of_the_optimizer_from_its_first_look_on() -> None:
    """mjoin-init keeps the multi-way join if there is no limit."""
    rows, asked, engine = run(optimizer="mjoin-init", check=True, reroute_every=1)
    assert rows == list(expected()) and engine.slot.executor.plan.text == "(c b a)"
    changed = next(n for n, counts in enumerate(asked) if counts[A])
    assert changed * BATCH >= SECOND and asked[changed - 1] == {C: changed * RATES["b"] * BATCH // SECOND, A: 0}
    assert all(counts[C] == asked[changed - 1][C] for counts in asked[changed:]), "no row probes c first any more"


@pytest.mark.parametrize("settings", [{"optimizer": "off"}, {"plan": "mjoin"}])
def test_the_written_order_without_a_better_one(settings: dict[str, str]) -> None:
    rows, asked, _ = run(**settings)
    assert rows == list(expected()) and asked[-1][A] == 0


def test_a_tree_that_is_chosen_has_its_orders() -> None:
    rows, _, engine = run()
    assert rows == list(expected()) and engine.slot.executor.plan.text == "(c (b a))"


def test_orders_go_from_process_to_process(tmp_path: Path) -> None:
    settings, rows, asked = Settings(router="fixed", optimizer="mjoin-init", reroute_every=1), list[Row](), []
    slot = open_slot(written(), settings, str(tmp_path), tuning=FIXED)
    for number, batch in enumerate(batches()):
        rows += run_batch(slot, number, batch)
        asked.append({t.after[0] ^ B: t.tuples for t in slot.executor.eddy.routes.entries[B, 0].steps})
        assert save(slot)
        close(slot)
        slot = open_slot(written(), settings, str(tmp_path), tuning=FIXED)
    close(slot)
    assert sorted(rows, key=repr) == list(expected())
    changed = next(n for n, counts in enumerate(asked) if counts[A])
    assert asked[-1][C] == asked[changed][C] and asked[-1][A] > 1000
