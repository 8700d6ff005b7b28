"""Proposals from synthetic statistics: a cheaper plan is taken if it pays, and limits are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise
from math import inf

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.model import BoundQuery
from eddyline.bound.udf import udf
from eddyline.codec import packed, unpacked
from eddyline.optimizer.cost_model import CostModel
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.move import Move
from eddyline.optimizer.optimizer import STEP, TRIED, Optimizer, OptimizerSnapshot, Outcome, StemContents
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.rules import RULES, Rule, next_step, recall, undo
from eddyline.optimizer.situation import Proposal, Situation
from eddyline.optimizer.timing import GLANCE, Usage
from eddyline.optimizer.tuning import DEFAULT as TUNING
from eddyline.optimizer.tuning import OptimizerTuning
from eddyline.optimizer.workload import Access, Workload
from eddyline.plan.plan import Plan
from eddyline.plan.tree import mjoin, parse_tree
from eddyline.settings import Settings
from tests.support.jobs import bound

FIXED = OptimizerTuning(costs=DEFAULTS)
W = "[RANGE 1 SECONDS]"
CHAIN = bound(f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.x = b.x AND b.k = c.k", a="x", b="x k", c="k")
RATES = (1000, 1000, 10_000)
RARE, OFTEN, LITTLE = 1e-5, 0.01, 0.0003
"""Selectivities. RARE: hardly any match. OFTEN: a row of c has ten matches in b, so joining a and b first pays. LITTLE:
so few matches that it hardly pays."""


class Watched:
    """An optimizer that sees batches of a tenth of a second, with the given selectivities of a-b and b-c."""

    def __init__(
        self,
        tree: str = "(a b c)",
        query: BoundQuery = CHAIN,
        rules: Sequence[Rule] = RULES,
        tuning: OptimizerTuning = FIXED,
        **settings: object,
    ) -> None:
        self.plan = Plan(query, parse_tree(tree, [s.alias for s in query.sources]))
        ticks = count()
        self.optimizer = Optimizer(self.plan, Settings(**settings), lambda: next(ticks) * 1e-3, tuning, rules)
        self.time = 0

    def see(
        self,
        ab: float,
        bc: float,
        batches: int = 31,
        usage: Usage | None = None,
        selections: Mapping[int, tuple[int, int, float]] | None = None,
    ) -> Watched:
        a, b, c = RATES
        tenth = {1: a // 10, 2: b // 10, 4: c // 10}
        fan_outs = {(1, 2): b * ab, (2, 1): a * ab, (4, 2): b * bc, (2, 4): c * bc}
        probes = {key: (tenth[key[0]], round(tenth[key[0]] * fan_out)) for key, fan_out in fan_outs.items()}
        for _ in range(batches):
            seconds = sum(took for _, _, took in (selections or {}).values())
            used = usage or Usage(0.01 + seconds, 0, selecting=seconds)
            self.optimizer.watch(self.time, [r // 10 for r in RATES], probes, used, selections)
            self.time += 100_000
        return self

    def propose(self) -> Outcome | None:
        return self.optimizer.propose(self.plan, self.held)

    def timing_said(self) -> str | None:
        return self.optimizer.timing.due()

    @property
    def held(self) -> list[StemContents]:
        return [StemContents(rate, 30.0) for rate in RATES]


def proposed(watched: Watched) -> tuple[str, bool]:
    found = watched.propose()
    assert found is not None
    return found.tree.text("abc"), found.taken


def test_nothing_before_enough_was_seen() -> None:
    watched = Watched().see(RARE, OFTEN, batches=5)
    assert watched.propose() is None and watched.optimizer.last is None


def test_the_cheaper_tree_is_taken() -> None:
    watched = Watched().see(RARE, OFTEN)
    found = watched.propose()
    assert found is not None and found is watched.optimizer.last
    assert (found.tree.text("abc"), found.taken) == ("((a b) c)", True)
    assert found.cost.cpu < (1 - TUNING.gain) * found.now.cpu
    assert found.why == "enough rows have been seen; the first look for a better plan"
    assert found.measured["rate c"] == pytest.approx(RATES[2], rel=0.01)
    assert found.measured["cpu"] == found.cost.cpu and found.measured["memory now"] == found.now.memory


def test_the_prediction_for_the_current_plan_is_what_was_measured() -> None:
    """The plan takes 0.01 s of CPU per tenth of a second of event time."""
    found = Watched().see(RARE, OFTEN).propose()
    assert found is not None and found.now.cpu == pytest.approx(0.1, rel=0.02)


def test_a_small_gain_is_not_worth_a_change() -> None:
    watched = Watched().see(RARE, LITTLE)
    found = watched.propose()
    assert found is not None and found.tree.text("abc") == "((a b) c)" and not found.taken
    assert (1 - TUNING.gain) * found.now.cpu < found.cost.cpu < found.now.cpu


def test_the_best_plan_stays() -> None:
    assert proposed(Watched("((a b) c)").see(RARE, OFTEN)) == ("((a b) c)", False)


def test_it_looks_again_only_when_something_changed() -> None:
    watched = Watched().see(RARE, LITTLE)
    assert not proposed(watched)[1]
    batches = TUNING.interval_rows // (sum(RATES) // 10) + 1
    assert watched.see(RARE, LITTLE, batches).propose() is None, "an interval later, and nothing changed"
    assert watched.see(RARE, OFTEN, batches).propose() is None, "the interval has grown"
    again = watched.see(RARE, OFTEN, 3 * batches).propose()
    assert again is not None and again.taken and again.why.startswith("an interval has passed; selectivity 1-2 0.0003")


def test_a_plan_above_its_memory_limit_is_left_for_one_that_is_not() -> None:
    many = 0.03
    found = Watched("((a b) c)").see(many, 0.001).propose()
    assert found is not None and not found.taken
    limit = 1_200_000
    found = Watched("((a b) c)", memory=limit).see(many, 0.001).propose()
    assert found is not None and found.taken and found.tree.text("abc") == "(a b c)"
    assert found.cost.memory < limit < found.now.memory
    assert found.cost.cpu > (1 - TUNING.gain) * found.now.cpu, "the CPU is not the reason"


def test_the_plan_within_the_limits_with_the_least_cpu() -> None:
    """Without the limit it would be another plan."""
    free = Watched().see(0.03, 0.001).propose()
    tight = Watched(memory=1_200_000).see(0.03, 0.001).propose()
    assert free is not None and tight is not None
    assert free.tree.text("abc") == "(a (b c))" and tight.tree.text("abc") == "(a b c)"


@pytest.mark.parametrize(
    ("name", "limits", "expected"),
    [
        ("auto", {}, ("((a b) c)", True)),
        ("exhaustive", {}, ("((a b) c)", True)),
        ("bjtree-init", {}, ("((a b) c)", True)),
        ("mjoin-init", {}, ("(a b c)", False)),
        ("mjoin-init", {"cpu": 0.05}, ("((a b) c)", True)),
        ("exhaustive", {"cpu": 0.05}, ("((a b) c)", True)),
    ],
)
def test_the_proposal_of_each_algorithm(name: str, limits: dict[str, float], expected: tuple[str, bool]) -> None:
    """mjoin-init adds states only until the plan is within its limits; without limits every plan is."""
    assert proposed(Watched(optimizer=name, **limits).see(RARE, OFTEN)) == expected


def test_no_plan_within_the_limits() -> None:
    """There is still a proposal, but it is taken only if it saves enough."""
    tree, taken = proposed(Watched("((a b) c)", cpu=1e-6, memory=1000).see(RARE, OFTEN))
    assert tree in ("((a b) c)", "(a b c)") and not taken


def test_rows_before_the_event_time_was_known_are_in_no_rate() -> None:
    watched = Watched().see(RARE, OFTEN, batches=3)
    assert [watched.optimizer.observed.rate(i) for i in range(3)] == [pytest.approx(r) for r in RATES]


def workload_of(where: str, shares: dict[tuple[int, int], float], streams: str = "abc") -> Workload:
    """The workload of streams with 100 rows per second in windows of one second, from probes with these fan-outs."""
    windows = ", ".join(f"{s} {W}" for s in streams)
    query = bound(f"SELECT a.x FROM {windows} WHERE {where}", None, (), **dict.fromkeys(streams, "k x y"))
    watched = Watched(f"({' '.join(streams)})", query)
    probes = {key: (10_000, round(10_000 * fan_out)) for key, fan_out in shares.items()}
    for at in range(30):
        watched.optimizer.watch(at * 100_000, [10] * len(streams), probes, Usage(0.0, 0))
    return watched.optimizer.workload([StemContents(100, 30.0)] * len(streams))


def test_a_class_is_an_edge_for_each_pair_that_counts_once_between_spans() -> None:
    workload = workload_of("a.k = b.k AND b.k = c.k", {(1, 2): 2.0, (2, 4): 2.0})
    assert [(e.left, e.right) for e in workload.edges] == [(0, 1), (0, 2), (1, 2)]
    assert all(e.selectivity == pytest.approx(0.02, rel=0.05) for e in workload.edges)
    assert len({e.indexes for e in workload.edges}) == 1, "one index of each source serves all"
    assert CostModel(workload, DEFAULTS).live(0b111) == pytest.approx(100**3 * 0.02**2, rel=0.1)


def test_composite_keys_and_classes_that_overlap() -> None:
    """First k over all three and x between a and b only; then both over all three."""
    workload = workload_of("a.k = b.k AND b.k = c.k AND a.x = b.x", {(1, 2): 0.2, (2, 4): 2.0, (1, 4): 2.0})
    edges = {(e.left, e.right): e for e in workload.edges}
    assert edges[0, 1].selectivity == pytest.approx(0.002, rel=0.1) and len(edges[0, 1].classes) == 2
    assert edges[1, 2].selectivity == pytest.approx(0.02, rel=0.05)
    model = CostModel(workload, DEFAULTS)
    assert model.live(0b111) == pytest.approx(100**3 * 0.02**2 * 0.1, rel=0.15)
    assert model.link(0b011, 0b100)[0] == pytest.approx(0.02, rel=0.05)
    both = workload_of("a.k = b.k AND b.k = c.k AND a.x = b.x AND b.x = c.x", {(1, 2): 0.2, (2, 4): 0.2})
    assert CostModel(both, DEFAULTS).live(0b111) == pytest.approx(100**3 * 0.002**2, rel=0.15)


def test_a_range_beside_a_class_is_part_of_the_edge() -> None:
    workload = workload_of("a.k = b.k AND b.k = c.k AND a.x < b.x", {(1, 2): 1.0, (2, 4): 2.0})
    edges = {(e.left, e.right): e for e in workload.edges}
    assert edges[0, 1].access is Access.HASH and edges[0, 1].selectivity == pytest.approx(0.01, rel=0.05)
    assert [part for part, _ in edges[0, 1].parts] == [0, None]
    assert CostModel(workload, DEFAULTS).live(0b111) == pytest.approx(100**3 * 0.02**2 * 0.5, rel=0.1)


def test_a_condition_over_three_sources_is_a_correction() -> None:
    workload = workload_of("a.k = b.k AND b.y = c.y AND a.x + b.x > c.x", {(1, 2): 2.0, (2, 4): 2.0, (3, 4): 0.5})
    ((span, factor),) = workload.joint
    assert span == 0b111 and factor == pytest.approx(0.25, rel=0.1)


PRESSED = Usage(0.03, 0, None, 0.2)
"""0.03 s of CPU per batch of a tenth of a second of event time: 0.3 of a core, which is above the limit."""
INTERVAL = TUNING.interval_rows // (sum(RATES) // 10) + 1
"""Batches per interval."""


def test_more_cpu_than_the_limit_asks_for_a_plan_though_nothing_changed() -> None:
    """At first the plan is within the limit, and the tree would save too little; then the same work takes three times
    as long."""
    watched = Watched(cpu=0.2).see(RARE, LITTLE)
    assert proposed(watched) == ("((a b) c)", False)
    pressed = watched.see(RARE, LITTLE, INTERVAL + 20, PRESSED).propose()
    assert pressed is not None and pressed.why == "more CPU than its limit for a whole window"
    assert pressed.now.cpu > 0.2, "measurements correct the costs"


def test_pressure_that_finds_no_better_plan_asks_less_and_less_often() -> None:
    watched = Watched("((a b) c)", cpu=0.01).see(RARE, OFTEN, usage=PRESSED)
    asked = [n for n in range(40 * INTERVAL) if watched.see(RARE, OFTEN, 1, PRESSED).propose() is not None]
    gaps = [(b - a) // INTERVAL for a, b in pairwise(asked)]
    assert 3 <= len(asked) <= 7 and gaps == sorted(gaps) and gaps[-1] >= 8


def test_optimize_when_says_what_asks() -> None:
    assert Watched(optimize_when="memory").see(RARE, OFTEN).propose() is None
    near = Watched("((a b) c)", optimize_when="memory", memory=10_000).see(RARE, OFTEN, usage=Usage(0.01, 9999, 10_000))
    found = near.propose()
    assert found is not None and found.why == "memory is near its limit; the first look for a better plan"
    assert (
        Watched(optimize_when="data", cpu=0.2).see(RARE, OFTEN, usage=PRESSED).timing_said()
        == "enough rows have been seen"
    )
    assert Watched(optimize_when="refined", cpu=0.2).see(RARE, OFTEN, usage=PRESSED).timing_said() == (
        "more CPU than its limit for a whole window"
    )


def moved(watched: Watched, ab: float, bc: float, batches: int) -> Outcome:
    """Feed batches until a proposal is taken, and change the plan as the slot would; returns the proposal."""
    for _ in range(batches):
        found = watched.see(ab, bc, 1).propose()
        if found is not None and found.taken:
            watched.plan = Plan(watched.plan.query, found.tree)
            return found
    raise AssertionError("nothing was taken")


def no_search(situation: Situation) -> Proposal | None:
    assert not situation.looking, "there is no need to search"
    return None


def test_a_plan_comes_back_from_the_library_at_once() -> None:
    """First b and c hardly match, then a and b; when the first statistics return, no search is needed."""
    watched = Watched("((a b) c)")
    first = moved(watched, OFTEN, RARE, 100)
    assert first.tree.text("abc") == "(a (b c))" and len(watched.optimizer.library) == 1
    second = moved(watched, RARE, OFTEN, 100 * INTERVAL)
    assert second.tree.text("abc") == "((a b) c)" and GLANCE not in second.why
    while watched.optimizer.timing.saved().interval < 16:  # look until the next look is far off
        assert watched.see(RARE, OFTEN, 1).propose() is None or not watched.optimizer.last.taken
    seen = Watched("((a b) c)", rules=(undo, next_step, recall, no_search))
    seen.optimizer.restore(unpacked(packed(watched.optimizer.saved()), OptimizerSnapshot))
    seen.time = watched.time
    back = moved(seen, OFTEN, RARE, 8 * INTERVAL)
    assert back.tree.text("abc") == "(a (b c))" and back.cost.cpu < (1 - TUNING.gain) * back.now.cpu
    assert back.why.startswith(f"{GLANCE}, this plan was found then, for ") and "selectivity 0-1" in back.why
    assert back.measured["plans"] == 1.0


def test_the_library_has_nothing_for_what_is_new() -> None:
    watched = Watched().see(RARE, OFTEN)
    assert proposed(watched)[1]
    watched.plan = Plan(CHAIN, parse_tree("((a b) c)", "abc"))
    for _ in range(INTERVAL):
        assert watched.see(RARE, OFTEN, 1).propose() is None
    watched.see(OFTEN, RARE, INTERVAL)
    assert watched.optimizer.due(watched.plan) is None, "there is no other plan in the library"
    watched.optimizer.library.remember({"something": 1.0}, mjoin(3), Cost(0.0, 0.0))
    before = watched.optimizer.timing.saved()
    assert watched.optimizer.due(watched.plan) == GLANCE and watched.propose() is None
    after = watched.optimizer.timing.saved()
    kept = "rows", "rows_then", "interval", "quiet", "patience", "then", "held", "changes", "since", "stretch"
    same = {name: (getattr(before, name), getattr(after, name)) for name in kept}
    assert all(then == now for then, now in same.values()), "after a glance the next look does not move"
    assert watched.optimizer.due(watched.plan) is None


def test_orders_are_those_of_the_current_plan() -> None:
    watched = Watched(optimizer="mjoin-init")
    assert watched.optimizer.orderings == {}
    watched.see(RARE, OFTEN).propose()
    assert watched.optimizer.orderings[7, 2] == (1, 4), "b probes a first, where it has hardly any match"
    other = Watched(optimizer="mjoin-init").see(OFTEN, RARE)
    other.propose()
    assert other.optimizer.orderings[7, 2] == (4, 1)
    tree = Watched().see(RARE, OFTEN)
    assert proposed(tree) == ("((a b) c)", True)
    assert tree.optimizer.orderings.keys() == {(7, 1), (7, 2), (7, 4)}, "the plan has not been changed yet"
    again = Watched()
    again.optimizer.restore(unpacked(packed(tree.optimizer.saved()), OptimizerSnapshot))
    for watched in (tree, again):
        watched.optimizer.new_plan(parse_tree("((a b) c)", "abc"))
    assert again.optimizer.orderings == tree.optimizer.orderings
    assert tree.optimizer.orderings == {(3, 1): (2,), (3, 2): (1,), (7, 3): (4,), (7, 4): (3,)}


@udf(returns=pa.bool_(), name="priced_selection")
def priced_selection(x: np.ndarray) -> np.ndarray:
    return x > 0


SELECTING = bound(
    f"SELECT a.x FROM a {W}, b {W}, c {W} WHERE a.x = b.x AND b.k = c.k AND priced_selection(a.x)",
    a="x",
    b="x k",
    c="k",
)


def test_an_expensive_selection_is_part_of_the_price() -> None:
    """Each row of c has 0.3 matches with b and a: the selection of a is evaluated 3000 times per second for c, and 2000
    times for a and b. If (a b) is kept, its tuples have passed the selection already."""
    cheap, dear = (Watched(query=SELECTING) for _ in range(2))
    for watched, seconds in ((cheap, 1e-9), (dear, 2e-4)):
        watched.see(0.001, LITTLE, selections={0: (500, 400, 500 * seconds)})
    ((condition, share, each),) = [(s.span, s.selectivity, s.seconds) for s in dear.optimizer.selections()]
    assert condition == 0b001 and share == pytest.approx(0.8, rel=0.01) and each == pytest.approx(2e-4)
    found = {name: w.propose() for name, w in (("cheap", cheap), ("dear", dear))}
    assert found["dear"] is not None and found["cheap"] is not None
    assert found["dear"].tree.text("abc") == "((a b) c)" and found["dear"].taken
    assert not found["cheap"].taken
    assert "selection 0" in dear.optimizer.timing.saved().then


def test_saved_and_restored() -> None:
    watched, again = Watched(query=SELECTING), Watched(query=SELECTING)
    watched.see(RARE, LITTLE, selections={0: (50, 40, 0.001)}).propose()
    assert len(watched.optimizer.library) == 1 and watched.optimizer.orderings
    again.optimizer.restore(unpacked(packed(watched.optimizer.saved()), OptimizerSnapshot))
    assert again.optimizer.saved() == watched.optimizer.saved()
    assert again.optimizer.orderings == watched.optimizer.orderings
    assert again.optimizer.selections() == watched.optimizer.selections() != ()


def test_a_proposal_after_it_was_restored() -> None:
    watched, again = Watched().see(RARE, OFTEN), Watched()
    again.optimizer.restore(unpacked(packed(watched.optimizer.saved()), OptimizerSnapshot))
    assert proposed(again) == proposed(watched) == ("((a b) c)", True)


# Whether to change


def test_with_migration_off_proposals_are_only_told() -> None:
    watched = Watched(migration="off").see(RARE, OFTEN)
    found = watched.propose()
    assert found is not None and found.tree.text("abc") == "((a b) c)" and not found.taken and found.move is None
    assert found.why == "enough rows have been seen; the first look for a better plan; not taken: migration=off"
    assert found.measured["move seconds"] > 0.0
    assert watched.optimizer.orderings.keys() == {(7, 1), (7, 2), (7, 4)}, "the orderings of the plan that stays"


@pytest.mark.parametrize("name", ["moving-state", "parallel-track"])
def test_how_it_is_changed(name: str) -> None:
    found = Watched(migration=name).see(RARE, OFTEN).propose()
    assert found is not None and found.move is not None and found.move.parallel == (name == "parallel-track")
    assert found.move.tree == found.tree and found.measured["move rows"] == found.move.predicted.rows > 0.0
    assert found.move.predicted.duration == (1.0 if found.move.parallel else pytest.approx(0.0, abs=0.5))


def test_a_change_that_does_not_pay_back_is_not_begun() -> None:
    """Nothing is saved while the change goes on; it pays if statistics stay the same for long enough."""
    for slower, taken in ((1.0, True), (1e4, False)):
        watched = Watched(tuning=replace(FIXED, stable=0.0)).see(RARE, OFTEN)
        costs = watched.optimizer.worth.move
        watched.optimizer.worth.move = lambda *args, costs=costs, slower=slower: dearer(costs(*args), slower)
        found = watched.propose()
        assert found is not None and found.taken is taken
        saved = (found.now.cpu - found.cost.cpu) * (3.0 - found.measured["move duration"])
        assert (saved > found.measured["move seconds"]) is taken
    assert "not taken: the change takes" in found.why and found.why.endswith("in 3 s")
    watched = Watched(tuning=replace(FIXED, stable=1e6)).see(RARE, OFTEN)
    watched.optimizer.worth.move = lambda *args: dearer(costs(*args), 1e4)
    assert proposed(watched) == ("((a b) c)", True)


def dearer(move: Move, factor: float) -> Move:
    return replace(move, predicted=replace(move.predicted, seconds=move.predicted.seconds * factor))


def test_a_limit_does_not_ask_whether_it_pays_back() -> None:
    never = replace(FIXED, back=inf)
    assert proposed(Watched("((a b) c)", tuning=never, memory=1_200_000).see(0.03, 0.001)) == ("(a b c)", True)
    assert not proposed(Watched(tuning=never).see(RARE, OFTEN))[1]


def test_without_room_for_both_nothing_is_begun() -> None:
    """The current state is within the limit, but the states of both plans together are not."""
    free = Watched().see(RARE, OFTEN).propose()
    assert free is not None and free.taken and free.move is not None
    limit = round(free.now.memory + free.move.predicted.bytes) + 10
    for held, taken in ((limit - free.move.predicted.bytes, True), (limit, False)):
        watched = Watched(memory=limit).see(RARE, OFTEN, usage=Usage(0.01, int(held), limit))
        found = watched.propose()
        assert found is not None and found.taken is taken
    assert "not taken: no room for" in found.why


def tried(watched: Watched, worse: float, batches: int = 12) -> Outcome | None:
    """Take the proposed plan, which then takes `worse` times the CPU of the one before."""
    assert watched.optimizer.last is not None and watched.optimizer.last.taken
    watched.plan = Plan(watched.plan.query, watched.optimizer.last.tree)
    watched.optimizer.new_plan(watched.plan.tree)
    for _ in range(batches):
        found = watched.see(RARE, OFTEN, 1, Usage(0.01 * worse, 0)).propose()
        if found is not None:
            return found
    return None


def test_a_plan_that_turns_out_worse_is_left() -> None:
    watched = Watched().see(RARE, OFTEN)
    assert proposed(watched) == ("((a b) c)", True)
    found = tried(watched, 2.0)
    assert found is not None and found.taken and found.tree.text("abc") == "(a b c)" and found.move is not None
    assert found.why == f"undone: {TRIED}, which takes 0.2 of a core, and 0.1 was enough before it"
    assert found.cost.cpu == pytest.approx(0.1, rel=0.01) and found.now.cpu == pytest.approx(0.2, rel=0.02)
    watched.plan = Plan(CHAIN, found.tree)
    watched.optimizer.new_plan(found.tree)
    for _ in range(30 * INTERVAL):
        again = watched.see(RARE, OFTEN, 1).propose()
        assert again is None or not again.taken, "the plan is not tried again while no statistic has changed"


@pytest.mark.parametrize("better", [0.5, 1.0, 1.0 / (1.0 - TUNING.gain) - 0.05])
def test_a_plan_that_is_not_much_worse_stays(better: float) -> None:
    watched = Watched().see(RARE, OFTEN)
    assert proposed(watched)[1] and tried(watched, better) is None
    assert watched.optimizer.trials.now is None and not watched.optimizer.worth.lost(watched.plan.tree)


def test_what_was_taken_for_a_limit_is_on_no_trial() -> None:
    watched = Watched("((a b) c)", memory=1_200_000).see(0.03, 0.001)
    assert proposed(watched) == ("(a b c)", True) and watched.optimizer.trials.now is None


def test_statistics_that_changed_meanwhile_tell_nothing_of_the_plan() -> None:
    watched = Watched().see(RARE, OFTEN)
    assert proposed(watched)[1]
    watched.plan = Plan(CHAIN, parse_tree("((a b) c)", "abc"))
    watched.optimizer.new_plan(watched.plan.tree)
    for _ in range(30):
        found = watched.see(OFTEN, OFTEN, 1, Usage(0.05, 0)).propose()
        assert found is None or not found.why.startswith("undone")
    assert watched.optimizer.trials.now is None and not watched.optimizer.worth.lost(watched.plan.tree)


def test_a_tree_that_lost_is_tried_again_when_statistics_have_changed() -> None:
    """The time until it is tried again at least doubles with each loss."""
    watched, seen = Watched().see(RARE, OFTEN), []
    for _ in range(3):
        assert watched.optimizer.last is None or watched.optimizer.last.why.startswith("undone")
        for n in range(20_000):
            found = watched.see(RARE * (1 + n // 500 % 2), OFTEN, 1).propose()
            if found is not None and found.taken:
                break
        assert found is not None and found.tree.text("abc") == "((a b) c)"
        seen.append(watched.time)
        undone = tried(watched, 3.0, 30)
        assert undone is not None and undone.why.startswith("undone")
        watched.plan = Plan(CHAIN, undone.tree)
        watched.optimizer.new_plan(undone.tree)
    first, second = seen[1] - seen[0], seen[2] - seen[1]
    assert first >= 4_000_000 and second >= 8_000_000


SIX = "abcdef"
LONG = bound(
    f"SELECT a.x FROM {', '.join(f'{s} {W}' for s in SIX)} "
    "WHERE a.x = b.x AND b.y = c.y AND c.k = d.k AND d.x = e.x AND e.y = f.y",
    **dict.fromkeys(SIX, "k x y"),
)


def six(old: str, new: str, held: int = 0, **settings: object) -> Watched:
    """A chain in which the first two of every three sources hardly match, and the others often; the search finds
    `new`."""

    def finds(situation: Situation) -> Proposal | None:
        if not situation.looking:
            return None
        return Proposal(situation.pricing.plan(parse_tree(new, SIX)), situation.why)

    watched = Watched(old, LONG, (undo, next_step, recall, finds), **settings)
    shares = (RARE, 0.02, 1e-4, RARE, 0.02)
    probes = {key: (100, round(100 * 1000 * share)) for i, share in enumerate(shares)
              for key in ((1 << i, 2 << i), (2 << i, 1 << i))}  # fmt: skip
    for at in range(40):
        watched.optimizer.watch(
            at * 100_000, [100] * 6, probes, Usage(0.01, held, watched.optimizer.worth.limits.memory)
        )
    return watched


def test_without_room_for_all_boxes_they_are_moved_one_by_one() -> None:
    old, new = "((a b c) (d e f))", "(((a b) c) ((d e) f))"
    held = [StemContents(1000, 30.0)] * 6
    watched = six(old, new)
    whole = watched.optimizer.propose(watched.plan, held)
    assert whole is not None and whole.move is not None and whole.move.tree == whole.tree
    limit = 10**7 + round(0.75 * whole.move.predicted.bytes)
    watched = six(old, new, 10**7, memory=limit)
    first = watched.optimizer.propose(watched.plan, held)
    assert first is not None and first.move is not None and first.tree.text(SIX) == new
    step = first.move.tree
    assert step.text(SIX) in ("(((a b) c) (d e f))", "((a b c) ((d e) f))")
    assert watched.optimizer.trials.now is None
    watched.optimizer.restore(unpacked(packed(watched.optimizer.saved()), OptimizerSnapshot))
    watched.plan = Plan(LONG, step)
    watched.optimizer.new_plan(step)
    assert watched.optimizer.due(watched.plan) == STEP
    second = watched.optimizer.propose(watched.plan, held)
    assert second is not None and second.why == STEP and second.move is not None and second.move.tree == whole.tree
    watched.plan = Plan(LONG, second.tree)
    watched.optimizer.new_plan(second.tree)
    assert watched.optimizer.due(watched.plan) != STEP
