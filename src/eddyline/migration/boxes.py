"""Migration boxes: the smallest parts in which two plans differ.

The signature of an intermediate SteM alone tells its content: its span and the selections that its tuples have passed
(the bit map of applied predicates of the dissertation, 13.3.2). The way in which it was computed does not matter. So
states with the same signature match.
At the top of a box is an operator that both plans have, with different children: its output is the same before and
after. At its bottom are states that both plans keep; between them are the states that only one of the plans has.

Selections that move between operators change states of the same span. If a selection is *pushed down*, the new state is
made from the old one: the missing selections are applied to its tuples, and no join is repeated. Such a state is
*filtered*. It is at the bottom of the box above it. If the plans differ below it too, it is also at the top of another
box; the new plan joins nothing there, because its output comes from the old state. If a selection is *pulled up*, the
new state has tuples that the old one lacks. It counts as a fresh state, like one of another span, and is computed from
the states below it.

The same holds for a group-by that is pushed below a join or merged back. A state whose tuples have weights stands for
all combinations of its span, however they were grouped; so two such states match. A state with weights is made from one
without by grouping its tuples. Grouped tuples cannot be taken apart again, so the reverse is a fresh state.

A span identifies a state, with one exception: the output of an operator over a single source (tree.state_of).

Projections never change a state: tuples are row numbers, and the payload is gathered for results only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eddyline.plan.tree import Tree, passed, state_of, weighted


@dataclass(frozen=True)
class Box:
    """One place in which two plans differ. All fields hold states (`state_of`)."""

    top: int
    leaves: tuple[int, ...]
    dropped: tuple[int, ...]
    """States that only the old plan has."""
    fresh: tuple[int, ...]
    """States that only the new plan has, each after those below it."""
    filtered: tuple[int, ...] = ()
    """Leaves that have passed more selections in the new plan than in the old one, or have weights only in the new
    plan."""


def boxes(old: Tree, new: Tree, selections: Sequence[int] = ()) -> list[Box]:
    """Find the boxes in which two plans of the same sources differ. Boxes are disjoint, except that the top of one may
    be at the bottom of another. `selections` holds, for each selection, the sources that it needs.

    >>> boxes(Tree((Tree((0, 1)), 2)), Tree((0, Tree((1, 2)))))
    [Box(top=7, leaves=(1, 2, 4), dropped=(3,), fresh=(6,), filtered=())]
    >>> early, late = Tree((Tree((0, 1)), 2)), Tree((Tree((0, 1), late=True), 2))
    >>> boxes(late, early, [0b11]), boxes(early, late, [0b11])  # push-down, pull-up
    ([Box(top=7, leaves=(3, 4), dropped=(), fresh=(), filtered=(3,))], \
[Box(top=7, leaves=(1, 2, 4), dropped=(3,), fresh=(3,), filtered=())])
    """
    before, after = operators(old), operators(new)
    done, done_after = _told(old, selections), _told(new, selections)
    kept = {span for span in before.keys() & after.keys() if not done[span] & ~done_after[span]}
    more = {span for span in kept if done[span] != done_after[span]}
    bottom = kept | {1 << s for s in new.sources()}
    found = []
    for span in after:
        if span in kept and _children(before[span], done) != _children(after[span], done_after):
            dropped, leaves = _inside(before[span], bottom)
            fresh, _ = _inside(after[span], bottom)
            filtered = tuple(sorted(more & set(leaves)))
            found.append(Box(span, tuple(sorted(leaves)), tuple(dropped), tuple(fresh), filtered))
    return found


def _told(tree: Tree, selections: Sequence[int]) -> dict[int, int]:
    """By operator, what distinguishes its state from others of the span: the selections that its tuples have passed
    and, in one more bit, whether its tuples have weights."""
    heavy, done = weighted(tree), passed(tree, selections)
    return {state: done[t.span] | (t.span in heavy) << len(selections) for state, t in operators(tree).items()}


def operators(tree: Tree) -> dict[int, Tree]:
    """All operators by their states, each after those below it."""
    return {state_of(t): t for t in (*tree.below(), tree)}


def _children(tree: Tree, done: Mapping[int, int]) -> set[tuple[int, int]]:
    return {(state, done.get(state, 0)) for state in map(state_of, tree.children)}


def _inside(tree: Tree, bottom: Collection[int]) -> tuple[list[int], list[int]]:
    """The states below an operator, down to those at the bottom; and the states at the bottom."""
    inside, leaves = [], []
    for child in tree.children:
        if state_of(child) in bottom:
            leaves.append(state_of(child))
        elif isinstance(child, Tree):
            more_inside, more_leaves = _inside(child, bottom)
            inside += [*more_inside, state_of(child)]
            leaves += more_leaves
    return inside, leaves
