"""Execution models, and why no tuple may wait when states are exchanged (figure 15.2 of dissertation 002)."""

from __future__ import annotations

from itertools import count

import pytest

from eddyline.engine.slot import Slot
from eddyline.plan.tree import parse_tree
from eddyline.routing.eddy import Eddy
from eddyline.routing.meta_queue import MetaQueue
from tests.support.jobs import Row, batch_of, bound, schema, tuples
from tests.support.plan_world import QUERIES, options, planned, query, ready
from tests.support.slot_steps import run

W = "[RANGE 2 MICROSECONDS]"
COLUMNS = schema("k x")
FIGURE = bound(
    f"SELECT a.x, b.x AS y, c.x AS z FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.k = c.k",
    a=COLUMNS, b=COLUMNS, c=COLUMNS,
)  # fmt: skip


def figure_15_2(synchronised: bool) -> list[Row]:
    """b1, a1, b2, a2 and a3 have gone through (a b); c2 and c3 wait in their queue. a3 has purged b1 and a1 from the
    states of a and b: only the state of (a b) still has them, and c2 is in their window. Then (a b) is replaced by (b
    c).
    """
    slot = Slot(FIGURE, options(pause_ms=None), tree=parse_tree("((a b) c)", "abc"))
    slot.feed("b", batch_of(COLUMNS, [(1, 1, 1), (3, 2, 2)]))
    slot.feed("a", batch_of(COLUMNS, [(1, 1, 1), (3, 2, 2), (4, 2, 3)]))
    slot.executor.take_in()
    slot.feed("c", batch_of(COLUMNS, [(3, 1, 2), (4, 2, 3)]))
    if synchronised:  # waiting rows are processed before anything is purged or exchanged
        slot.executor.take_in()
    for source in (0, 1):
        slot.executor.stems[source].expire(4 - 2)
    slot.commit(1)
    slot.set_plan(parse_tree("(a (b c))", "abc"))
    slot.executor.take_in()
    slot.advance(dict.fromkeys("abc", 9), 9)
    return sorted(tuples(slot.drain()))


def test_the_counter_example_of_figure_15_2() -> None:
    whole = [(1, 1, 2), (2, 2, 3), (3, 2, 3)]
    assert figure_15_2(synchronised=True) == whole
    assert figure_15_2(synchronised=False) == whole[1:], "without synchronisation a1 b1 c2 is lost"


@pytest.mark.parametrize("execution", ["unsynchronized", "semi", "total"])
@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same_in_every_model(name: str, execution: str) -> None:
    steps, expected = planned(name)
    tree = (
        f"(({' '.join(s.alias for s in query(name).sources[:2])}) {' '.join(s.alias for s in query(name).sources[2:])})"
    )
    slot, found = ready(name, Slot(query(name), options(plan=tree, execution=execution, packet=2))), list[Row]()
    for number, step in enumerate(steps):
        found += run(slot, step)
        slot.commit(number + 1)
    assert sorted(found, key=repr) == expected


def served(execution: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    """For every packet that the scheduler chose: the oldest number in all queues, in it, and in all queues of its
    operator. A queue that is full is served at once, whoever is older: it is not chosen. The eddy with which the
    optimizer measures this machine, once in a process, is not looked at."""
    seen: list[tuple[int, int, int]] = []
    serve = Eddy._serve

    def look(eddy: Eddy, queue: MetaQueue) -> None:
        beside = [q.oldest for q in eddy.scheduler.queues.values() if q.occupancy]
        same = [
            q.oldest for q in eddy.scheduler.queues.values() if q.occupancy and q.entry.operator == queue.entry.operator
        ]
        if eddy is slot.executor.eddy and queue.occupancy < eddy.scheduler.full:
            seen.append((min(beside), queue.oldest, min(same)))
        serve(eddy, queue)

    monkeypatch.setattr(Eddy, "_serve", look)
    ticks = count()  # what is measured decides routes, so it must be the same each time
    chosen = options(plan="((a b) (c d))", execution=execution, packet=3, input_batch=8)
    slot = Slot(query("four"), chosen, clock=lambda: next(ticks) * 1e-6)
    for number, step in enumerate(planned("four")[0]):
        run(slot, step)
        slot.commit(number + 1)
    return seen


def test_a_semi_synchronised_operator_takes_what_is_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    semi = served("semi", monkeypatch)
    assert all(oldest == of_operator for _, oldest, of_operator in semi)
    assert any(anywhere < oldest for anywhere, oldest, _ in semi), "operators are not synchronised with each other"


def test_unsynchronised_queues_run_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(oldest > of_operator for _, oldest, of_operator in served("unsynchronized", monkeypatch))


def test_totally_synchronised_rows_come_one_by_one_in_the_order_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    build = Eddy.build

    def look(eddy: Eddy, source: int, rows: int) -> None:
        stem = eddy._stems[source]
        assert rows == 1 and eddy.is_idle
        built.append(int(stem.rows.times.values[stem.built]))
        build(eddy, source, rows)

    monkeypatch.setattr(Eddy, "build", look)
    slot = Slot(FIGURE, options(execution="total"))
    slot.feed("a", batch_of(COLUMNS, [(1, 1, 1), (4, 1, 1), (6, 1, 1)]))
    slot.feed("b", batch_of(COLUMNS, [(2, 1, 1), (3, 1, 1)]))
    slot.feed("c", batch_of(COLUMNS, [(5, 1, 1)]))
    slot.executor.take_in()
    assert built == [1, 2, 3, 4, 5, 6]
