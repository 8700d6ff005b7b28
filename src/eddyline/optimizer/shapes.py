"""Shapes: trees in the form that the algorithms change. A shape maps each operator's span to the spans of its children.

Two changes lead from any tree to any other. `group` puts two children of an operator into a new operator below it (one
more state); `dissolve` gives the children of an operator to the one above it (one state less). Each changes only two
operators.

A shape has no marks; a tree with marks stays a `Tree` (plan/tree.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eddyline.plan.tree import Tree, parse_tree, span_of

Shape = Mapping[int, tuple[int, ...]]
"""Span of an operator -> the spans of its children in increasing order."""


def mjoin_shape(sources: int) -> Shape:
    """The shape of a multi-way join: one operator over all sources."""
    return {(1 << sources) - 1: tuple(1 << i for i in range(sources))}


def shape_of(tree: Tree) -> Shape:
    """The shape of a tree.

    >>> shape_of(Tree((Tree((0, 1)), 2)))
    {3: (1, 2), 7: (3, 4)}
    """
    return {op.span: tuple(sorted(map(span_of, op.children))) for op in (*tree.below(), tree)}


def tree_of(shape: Shape) -> Tree:
    """The tree of a shape.

    >>> tree_of({7: (3, 4), 3: (1, 2)})
    Tree(children=(Tree(children=(0, 1)), 2))
    """

    def node(span: int) -> Tree:
        children = sorted(shape[span], key=lambda child: child & -child)
        return Tree(tuple(node(c) if c & (c - 1) else c.bit_length() - 1 for c in children))

    return node(max(shape))


def canonical(tree: Tree) -> Tree:
    """A form that is the same for trees that differ only in the order of children; marks stay.

    >>> canonical(Tree((2, Tree((1, 0), grouped=True))))
    Tree(children=(Tree(children=(0, 1), grouped=True), 2))
    """
    children = (canonical(child) if isinstance(child, Tree) else child for child in tree.children)
    return replace(tree, children=tuple(sorted(children, key=lambda child: span_of(child) & -span_of(child))))


def is_marked(tree: Tree) -> bool:
    """Whether an operator of the tree groups or holds selections back."""
    return any(t.late or t.grouped for t in tree.below())


def tree_text(tree: Tree) -> str:
    """A tree as text, with numbers for its sources.

    >>> tree_text(Tree((Tree((0, 1), late=True), 2)))
    '((0 1)! 2)'
    """
    return tree.text([str(source) for source in range(tree.span.bit_length())])


def tree_of_text(text: str) -> Tree:
    """The tree that `tree_text` wrote.

    >>> tree_of_text("((0 1)! 2)")
    Tree(children=(Tree(children=(0, 1), late=True), 2))
    """
    sources = len(text.replace("(", " ").replace(")", " ").replace("!", " ").replace("+", " ").split())
    return parse_tree(text, [str(source) for source in range(sources)])


def grouped(children: tuple[int, ...], left: int, right: int) -> tuple[int, ...]:
    """The children of an operator after two of them are grouped into one."""
    return tuple(sorted([*(c for c in children if c not in (left, right)), left | right]))


def group(shape: Shape, operator: int, left: int, right: int) -> dict[int, tuple[int, ...]]:
    """Put two children of an operator, which has more than two, into a new operator below it."""
    pair = (left, right) if left < right else (right, left)
    return {**shape, operator: grouped(shape[operator], left, right), left | right: pair}


def dissolved(shape: Shape, operator: int, child: int) -> tuple[int, ...]:
    """The children of an operator after an operator below it is dissolved into it."""
    return tuple(sorted([*(c for c in shape[operator] if c != child), *shape[child]]))


def dissolve(shape: Shape, operator: int, child: int) -> dict[int, tuple[int, ...]]:
    """Dissolve the operator `child` into the one above it."""
    changed = {**shape, operator: dissolved(shape, operator, child)}
    del changed[child]
    return changed


def states(shape: Shape) -> list[tuple[int, int]]:
    """(operator, child) for each intermediate state."""
    return [(span, child) for span, children in shape.items() for child in children if child & (child - 1)]
