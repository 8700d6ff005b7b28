"""Migration boxes: the smallest parts in which two plans differ.

What an intermediate SteM holds is told by its signature alone, its span and the selections that its tuples have passed
(the bit map of applied predicates of the dissertation, 13.3.2), whichever way it was computed. So states match by that.
A box has at its top an operator that both plans have, with other children: what it gives is the same before and after.
At its bottom are states that both plans keep; between them are those that only the old or only the new plan has.

Selections that move between operators change states of the same span. One that is *pushed down* makes a state of the
old one by applying to it what is missing: it is *filtered*, and there is no need to join anything again. So it is at
the bottom of the box above and, if the plans differ below it, at the top of another, in which the new plan joins
nothing: what it would give comes of the old state. One that is *pulled up* makes a state with tuples that the old one
lacks: it is as new as one of another span, and computed from what is below it.

With a group-by that is pushed below a join, or merged back, it is the same. A state whose tuples have weights stands
for all combinations of its span, whichever of them were put together; so two such states match, and one is made of a
state without weights by putting its tuples together. Its tuples cannot be taken apart again: without weights it is new.

States are told by their spans, but for one: what an operator over a single source gives (tree.state_of).

Projections change no state wherever they are: tuples are row numbers, and the payload is gathered for results alone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from eddyline.plan.tree import Tree, passed, state_of, weighted


@dataclass(frozen=True)
class Box:
    """One place in which two plans differ, by states."""

    top: int
    leaves: tuple[int, ...]
    dropped: tuple[int, ...]
    """States of the old plan that the new one has not."""
    fresh: tuple[int, ...]
    """States that only the new plan has, each after those below it."""
    filtered: tuple[int, ...] = ()
    """Leaves that have passed more selections in the new plan than in the old one, or have weights there alone."""


def boxes(old: Tree, new: Tree, selections: Sequence[int] = ()) -> list[Box]:
    """Where two plans of the same sources differ; disjoint but for what is at the top of one and the bottom of another.
    Selections are given by the sources that they need.

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
    """By operator what tells its state from others of the span: selections that were passed and, one bit more, whether
    tuples have weights."""
    heavy, done = weighted(tree), passed(tree, selections)
    return {state: done[t.span] | (t.span in heavy) << len(selections) for state, t in operators(tree).items()}


def operators(tree: Tree) -> dict[int, Tree]:
    """All operators by their states, each after those below it."""
    return {state_of(t): t for t in (*tree.below(), tree)}


def _children(tree: Tree, done: Mapping[int, int]) -> set[tuple[int, int]]:
    return {(state, done.get(state, 0)) for state in map(state_of, tree.children)}


def _inside(tree: Tree, bottom: Collection[int]) -> tuple[list[int], list[int]]:
    """The spans below an operator down to those at the bottom, and these."""
    inside, leaves = [], []
    for child in tree.children:
        if state_of(child) in bottom:
            leaves.append(state_of(child))
        elif isinstance(child, Tree):
            more_inside, more_leaves = _inside(child, bottom)
            inside += [*more_inside, state_of(child)]
            leaves += more_leaves
    return inside, leaves
