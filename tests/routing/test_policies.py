"""The decision of each policy, given certain statistics."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from eddyline.plan.plan import Plan
from eddyline.plan.steps import Probe, Select
from eddyline.plan.tree import Tree
from eddyline.routing.decisions import KEPT, Decision, DecisionLog
from eddyline.routing.policies.auto import Auto
from eddyline.routing.policies.benefit import Benefit
from eddyline.routing.policies.fixed import Fixed
from eddyline.routing.policies.lottery import Lottery
from eddyline.routing.policies.policy import Policy
from eddyline.routing.policies.random import Random
from eddyline.routing.policies.rank import Rank
from eddyline.routing.router import router
from eddyline.routing.routing_arrays import Entry, RoutingArrays
from eddyline.routing.statistics import Work
from eddyline.routing.tuning import DEFAULT
from eddyline.settings import Settings
from eddyline.testing.clock import ManualClock
from tests.support.made_up import entry, no_overhead, plan, saw


def index(policy: Policy, of: Entry) -> int:
    return of.steps.index(policy.decide(of))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("auto", Auto), ("fixed", Fixed), ("random", Random), ("lottery", Lottery), ("rank", Rank), ("benefit", Benefit)],
)
def test_the_settings_name_the_router(name: str, kind: type) -> None:
    made = plan()
    assert isinstance(
        router(Settings(router=name), made, RoutingArrays(made), Work(), DecisionLog(), ManualClock()), kind
    )


@pytest.mark.parametrize("policy", [Fixed(), Random(1), Lottery(1), Rank(Work()), Benefit(Work())])
def test_all_but_auto_learn_from_the_traffic_alone(policy: Policy) -> None:
    of = entry((1000, 500, 1.0), None)
    assert policy.sample(of, 100) == 0 and policy.about(of) is None
    policy.surprised(of)
    policy.learn(of, np.zeros((1, 2)), np.zeros(2))
    assert policy.decide(of) in of.steps


def test_fixed_takes_the_order_of_the_script() -> None:
    assert index(Fixed(), entry((1000, 1000, 9.0), (1000, 0, 0.1))) == 0
    steps = RoutingArrays(plan()).entry((0b001, 0)).steps
    assert [isinstance(t.step, Probe) for t in steps] == [False, False, True]


def probed(policy: Policy, made: Plan, *signature: int) -> int:
    """The span that tuples probe next after they have passed all selections."""
    step = policy.decide(RoutingArrays(made).entry((signature[0], 0b111 & signature[1]))).step
    assert isinstance(step, Probe)
    return step.span


def test_fixed_follows_the_orders_that_it_is_told() -> None:
    """The join graph is a - b - c, so b may go to either side; selections come first, whatever the orders are."""
    made, policy = plan(), Fixed()
    assert probed(policy, made, 0b010, 0b010) == 0b001
    policy.follow({(7, 1): (2, 4), (7, 2): (4, 1), (7, 4): (2, 1)})
    assert probed(policy, made, 0b010, 0b010) == 0b100, "the given order, not the written one"
    assert probed(policy, made, 0b110, 0b010) == 0b001 and probed(policy, made, 0b011, 0b111) == 0b100
    assert isinstance(policy.decide(RoutingArrays(made).entry((0b010, 0))).step, Select)
    policy.follow({(7, 1): (4, 2), (7, 2): (1, 4), (7, 4): (1, 2)})
    assert probed(policy, made, 0b001, 0b101) == 0b010, "c is not linked to a: the next allowed child is taken"
    policy.follow({})
    assert probed(policy, made, 0b010, 0b010) == 0b001


def test_fixed_follows_the_orders_of_each_operator() -> None:
    """b starts in (a b), and tuples of a and b start in the operator above; orders of operators that do not exist are
    ignored."""
    made, policy = Plan(plan().query, Tree((Tree((0, 1)), 2))), Fixed()
    policy.follow({(3, 1): (2,), (3, 2): (1,), (7, 3): (4,), (7, 4): (3,), (6, 2): (4,), (6, 4): (2,)})
    assert probed(policy, made, 0b010, 0b010) == 0b001
    assert probed(policy, made, 0b011, 0b111) == 0b100 and probed(policy, made, 0b100, 0) == 0b011


def test_random_draws_the_same_with_the_same_seed_and_takes_every_step() -> None:
    of = entry(None, None, None)
    picked = [[index(made, of) for _ in range(50)] for made in (Random(1), Random(1), Random(2))]
    assert picked[0] == picked[1] != picked[2]
    assert set(picked[0]) == {0, 1, 2}


def drawn(of: Entry, seed: int, draws: int = 4000) -> Counter[int]:
    policy = Lottery(seed)
    return Counter(index(policy, of) for _ in range(draws))


def test_lottery_draws_by_tuples_consumed_minus_produced() -> None:
    of = entry((4000, 1000, 1.0), (2000, 1000, 1.0))
    for seed in range(3):
        picked = drawn(of, seed)
        assert picked[0] / 4000 == pytest.approx(0.75, abs=0.03)
    assert drawn(of, 1) == drawn(of, 1) != drawn(of, 2)


def test_lottery_does_not_look_at_costs() -> None:
    assert drawn(entry((1000, 0, 9.0), (1000, 0, 0.001)), 1)[0] / 4000 == pytest.approx(0.5, abs=0.03)


def test_lottery_leaves_a_module_that_produces_a_few_tickets() -> None:
    picked = drawn(entry((9 * int(DEFAULT.fewest_tickets), 0, 1.0), (1000, 50_000, 1.0), None), 1)
    assert picked[1] / 4000 == pytest.approx(1 / 11, abs=0.02)
    assert picked[2] / 4000 == pytest.approx(1 / 11, abs=0.02)


def test_lottery_counts_for_a_module_what_it_did_to_tuples_of_other_signatures() -> None:
    routes = RoutingArrays(plan())
    here, there = routes.entry((0b001, 0)), routes.entry((0b001, 0b100))
    assert here.steps[0].step == there.steps[0].step
    saw(there.steps[0], 5000, 0, 1.0)
    assert drawn(here, 1)[0] > 0.9 * 4000


def test_rank_is_the_least_of_selectivity_minus_one_over_cost() -> None:
    policy = Rank(no_overhead())
    assert index(policy, entry((1000, 500, 1.0), (1000, 400, 1.0))) == 1
    assert index(policy, entry((1000, 500, 1.0), (1000, 400, 1.3))) == 0
    assert index(policy, entry((1000, 900, 0.01), (1000, 100, 1.0))) == 0
    # both multiply tuples: the cheaper step comes first only if it makes fewer tuples per cost
    assert index(policy, entry((1000, 3000, 1.0), (1000, 2000, 1.0))) == 1
    assert index(policy, entry((1000, 3000, 4.0), (1000, 2000, 1.0))) == 0
    assert index(policy, entry((1000, 1000, 1.0), (1000, 1001, 0.001), (1000, 999, 5.0))) == 2


def test_benefit_is_the_value_of_what_is_made_over_cost() -> None:
    policy = Benefit(no_overhead())
    assert index(policy, entry((1000, 500, 1.0), (1000, 400, 1.0))) == 0
    assert index(policy, entry((1000, 500, 1.0), (1000, 400, 0.7))) == 1
    assert index(policy, entry((1000, 4000, 1.0), (1000, 0, 0.001))) == 0


def test_benefit_values_a_partial_result_by_the_sources_it_has() -> None:
    of = RoutingArrays(plan()).entry((0b001, 0))
    select, _, probe = of.steps
    for traffic in of.steps:
        saw(traffic, 1000, 10, 1.0)
    saw(select, 1000, 900, 1.0)
    saw(probe, 1000, 600, 1.0)
    assert Benefit(no_overhead()).decide(of) is probe  # 600 tuples of two sources have more value than 900 of one


@pytest.mark.parametrize("kind", [Rank, Benefit])
def test_a_step_without_fresh_evidence_is_taken(kind: type[Rank] | type[Benefit]) -> None:
    few = int(DEFAULT.rank_evidence) - 1
    assert index(kind(no_overhead()), entry((1000, 500, 1.0), None)) == 1
    assert index(kind(no_overhead()), entry((few, 0, 1e-9), (few, 0, 1e-9))) == 0
    of = entry((4 * few, 0, 1.0), (4 * few, 4 * few, 1.0))
    seen = index(kind(no_overhead()), of)
    assert seen == (0 if kind is Rank else 1)
    later = no_overhead(moment=3 * DEFAULT.half_rows)
    saw(of.steps[seen], 4 * few, 2 * few, 1.0, moment=3 * DEFAULT.half_rows)
    assert index(kind(later), of) == 1 - seen


def test_the_key_that_finds_most_rows_is_not_cheap_because_a_match_is() -> None:
    """c can be probed by x of a, or by k of b. Alone, x finds 1000 rows in a microsecond, and k one in half of it."""
    window = "[RANGE 5 MICROSECONDS]"
    made = plan(f"SELECT a.x FROM a {window}, b {window}, c {window} WHERE a.k = b.k AND b.k + 1 = c.k AND a.x = c.x")
    arrays, work = RoutingArrays(made), no_overhead()
    auto = Auto(made, arrays, work, DecisionLog(), 0.1, ManualClock())
    by_x, by_k = (next(t for t in arrays.entry((1 << source, 0)).steps if t.bit == 2) for source in (0, 1))
    by_x.add(10_000, 10_000_000, 10_000e-6, work)
    by_k.add(10_000, 10_000, 5_000e-6, work)
    assert by_x.module.cost < by_k.module.cost, "a match is cheap where there are many"
    both = {t.partner: t for t in arrays.entry((0b011, 0)).steps if t.bit == 2}
    assert min(both, key=lambda partner: auto.seconds(both[partner])) == 1
    both[1].add(100, 1, 1.0, work)
    both[0].add(100, 1, 0.5, work)
    assert min(both, key=lambda partner: auto.seconds(both[partner])) == 0, "what these tuples cost counts more"


def test_the_newest_decisions_are_kept_and_all_are_counted() -> None:
    log = DecisionLog()
    for at in range(KEPT + 5):
        log.add(Decision("reroute" if at % 2 else "other", at, "this", "that", {"cost": 1.0}))
    assert len(log.recent) == KEPT and log.recent[-1].at == KEPT + 4 and log.recent[0].at == 5
    assert log.counts == {"reroute": (KEPT + 5) // 2, "other": (KEPT + 6) // 2}
