"""The proposals of the optimizer's rules, as in tests/optimizer/fixtures/rules.txt; every rule has a case.

The file holds blocks: a situation, a line `---`, the answers of the rules in turn. A situation has lines of streams and
of edges as in test_fixtures.py, a line of selections (sources, share that passes, microseconds), a line of groups (for
some spans, the number of groups of their tuples; in other spans each tuple is a group of its own), and the current
plan. The lines of selections and of groups may be `none`. After a change of the rules, run

    EDDYLINE_GOLDEN=write pytest tests/optimizer/test_rules.py

and read the difference.
"""

from __future__ import annotations

import os
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from eddyline.optimizer.best_ordering import best_ordering
from eddyline.optimizer.cost_model import CostModel, bits
from eddyline.optimizer.costs import DEFAULTS
from eddyline.optimizer.library import Remembered
from eddyline.optimizer.plans import Cost, ResourceLimits
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.rules import RULES, group_early, hold_back, next_step, recall, search, undo
from eddyline.optimizer.situation import Situation
from eddyline.optimizer.trials import Trial
from eddyline.optimizer.workload import GroupingLoad, JoinEdge, Selection, SourceLoad, Workload
from eddyline.plan.tree import Tree, mjoin, parse_tree

FILE = Path(__file__).parent / "fixtures" / "rules.txt"
RULE, ANSWER = "=" * 100, "---"
LEFT = Tree((Tree((0, 1)), 2))


def blocks() -> list[tuple[str, str]]:
    parts = FILE.read_text(encoding="utf-8").strip("\n").split(f"\n{RULE}\n")
    return [(situation, answer) for situation, _, answer in (part.partition(f"\n{ANSWER}\n") for part in parts)]


def read(text: str) -> tuple[list[str], Situation]:
    """The aliases, and a situation in which it is time for a search."""
    lines = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith("#"))
    words = [source.split() for source in lines["streams"].split(", ")]
    aliases = [word[0] for word in words]

    def span(names: str) -> int:
        return sum(1 << aliases.index(name) for name in names.split("-"))

    edges = []
    for edge in lines["edges"].split(", "):
        pair, share = edge.split()
        left, right = bits(span(pair))
        edges.append(JoinEdge(left, right, float(share)))
    selections = []
    for selection in lines["selections"].split(", ") if lines["selections"] != "none" else ():
        names, share, micros = selection.split()
        selections.append(Selection(span(names), float(share), 1e-6 * float(micros)))
    grouping = None
    if lines["groups"] != "none":
        counts = {span(a): float(count) for a, count in (item.split() for item in lines["groups"].split(", "))}
        grouping = GroupingLoad(lambda span, passed: counts.get(span, inf), 10.0, 32768.0)
    sources = tuple(SourceLoad.stream(float(rate), float(window)) for _, rate, window in words)
    workload = Workload(sources, tuple(edges), (), tuple(selections), (), grouping)
    return aliases, situation(Pricing(CostModel(workload, DEFAULTS), best_ordering), parse_tree(lines["plan"], aliases))


def situation(pricing: Pricing, tree: Tree) -> Situation:
    told = "it is time", "", 0.5, lambda now, then: then.cpu < now.cpu, lambda tree: False, "exhaustive", lambda: 0.0
    return Situation(tree, pricing, ResourceLimits(), *told, looking=True)


def answer_to(text: str) -> str:
    aliases, here = read(text)
    lines = []
    for rule in RULES:
        found = rule(here)
        if found is not None:
            here = replace(here, best=found)
            cost, now = found.plan.cost, here.current.cost
            costs = f"cpu {cost.cpu / now.cpu:.3f} memory {cost.memory / now.memory:.3f}"
            lines.append(f"{rule.__name__}: {found.plan.tree.text(aliases)} {costs}")
    return "\n".join(lines)


if os.environ.get("EDDYLINE_GOLDEN") == "write":
    FILE.write_text(
        f"\n{RULE}\n".join(f"{text}\n{ANSWER}\n{answer_to(text)}" for text, _ in blocks()) + "\n", encoding="utf-8"
    )


@pytest.mark.parametrize(("text", "answer"), blocks())
def test_answer(text: str, answer: str) -> None:
    assert answer_to(text) == answer


def test_marks_are_proposed_and_not() -> None:
    answers = [answer for _, answer in blocks()]
    for mark in "+!":
        assert any(mark in answer for answer in answers) and any(mark not in answer for answer in answers)


def plain() -> Situation:
    sources = (SourceLoad.stream(1000, 1), SourceLoad.stream(1000, 1), SourceLoad.stream(10_000, 1))
    workload = Workload(sources, (JoinEdge(0, 1, 1e-5), JoinEdge(1, 2, 0.01)))
    return replace(situation(Pricing(CostModel(workload, DEFAULTS)), mjoin(3)), looking=False)


def test_undo_goes_back_at_the_cost_that_was_measured() -> None:
    assert undo(plain()) is None
    found = undo(replace(plain(), lost_trial=Trial(LEFT, mjoin(3), 0.25, 1)))
    assert found is not None and found.sure and found.plan.tree == LEFT and found.plan.cost.cpu == 0.25
    assert found.why == "undone: it is time, which takes 0.5 of a core, and 0.25 was enough before it"


def test_a_step_is_taken_whatever_it_costs() -> None:
    assert next_step(plain()) is None
    found = next_step(replace(plain(), goal=LEFT))
    assert found is not None and found.plan.tree == LEFT and not found.sure


def test_what_is_remembered_must_be_better() -> None:
    assert recall(plain()) is None
    better = recall(replace(plain(), remembered=Remembered(LEFT, Cost(0.1, 1.0)), changed="a rate"))
    assert better is not None and better.why == "it is time, this plan was found then, for 0.1 of a core; a rate"
    worse = replace(plain(), tree=LEFT, remembered=Remembered(mjoin(3), Cost(0.1, 1.0)))
    assert recall(worse) is None


def test_nothing_is_searched_for_before_it_is_time() -> None:
    assert search(plain()) is None and group_early(plain()) is None and hold_back(plain()) is None
    found = search(replace(plain(), looking=True, changed="the first look for a better plan"))
    assert found is not None and found.plan.tree == LEFT and found.why == "it is time; the first look for a better plan"


def test_a_tree_that_lost_is_not_proposed() -> None:
    text = next(text for text, answer in blocks() if "group_early" in answer)
    _, here = read(text)
    best = search(here)
    assert best is not None
    first = group_early(replace(here, best=best))
    assert first is not None
    second = group_early(replace(here, best=best, is_lost=lambda tree: tree == first.plan.tree))
    assert second is None or second.plan.tree != first.plan.tree
