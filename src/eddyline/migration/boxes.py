"""Migration boxes: the smallest parts in which two plans differ.

What an intermediate SteM holds is told by its span alone, whichever way it was computed (plan/plan.py: all tuples of a
span have passed the same selections). So states match by span. A box has at its top an operator that both plans have,
with other children: what it gives is the same before and after. At its bottom are spans that both plans keep; between
them are the states that only the old or only the new plan has.
"""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.plan.tree import Tree, span_of


@dataclass(frozen=True)
class Box:
    """One place in which two plans differ, by spans."""

    top: int
    leaves: tuple[int, ...]
    dropped: tuple[int, ...]
    """States of the old plan that the new one has not."""
    fresh: tuple[int, ...]
    """States that only the new plan has, each after those below it."""


def boxes(old: Tree, new: Tree) -> list[Box]:
    """Where two plans of the same sources differ; disjoint but for what is at the top of one and the bottom of another.

    >>> boxes(Tree((Tree((0, 1)), 2)), Tree((0, Tree((1, 2)))))
    [Box(top=7, leaves=(1, 2, 4), dropped=(3,), fresh=(6,))]
    """
    before, after = operators(old), operators(new)
    kept = before.keys() & after.keys() | {1 << s for s in new.sources()}
    found = []
    for span in after:
        if span in before and _children(before[span]) != _children(after[span]):
            dropped, leaves = _inside(before[span], kept)
            fresh, _ = _inside(after[span], kept)
            found.append(Box(span, tuple(sorted(leaves)), tuple(dropped), tuple(fresh)))
    return found


def operators(tree: Tree) -> dict[int, Tree]:
    """All operators by their spans, each after those below it."""
    return {t.span: t for t in (*tree.below(), tree)}


def _children(tree: Tree) -> set[int]:
    return set(map(span_of, tree.children))


def _inside(tree: Tree, kept: set[int]) -> tuple[list[int], list[int]]:
    """The spans below an operator down to those that are kept, and these."""
    inside, leaves = [], []
    for child in tree.children:
        if isinstance(child, int) or child.span in kept:
            leaves.append(span_of(child))
        else:
            more_inside, more_leaves = _inside(child, kept)
            inside += [*more_inside, child.span]
            leaves += more_leaves
    return inside, leaves
