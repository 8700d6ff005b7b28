"""Plan shapes: a tree of join operators over the sources of a query.

A leaf is a source; an inner node is a join operator that joins its children with each other. Each child has a SteM: a
base SteM for a source, an intermediate one for the results of an operator. One operator over all sources is the
multi-way join; operators with two children each form a binary tree; everything between is a hybrid tree. In text,
operators are parentheses around aliases: ((a b) c). An alias that is not a plain name is written in double quotes, as
in SQL.

A selection is applied in the lowest operator that has all its sources, unless that operator is *late*, written with a !
behind it: ((a b)! c). Then the selection waits for the next operator above that is not late. The root is never late, so
a result has passed all selections.

An operator below the root may *group* its results, written with a + behind it: ((a b)+ c). Tuples that are equivalent
for all later steps become one tuple with a weight (see grouped.py). Tuples joined with it have weights too. An operator
over a single source exists only to group: ((a)+ b) groups the rows of a before they are joined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from eddyline.errors import SettingError

_PLAIN = re.compile(r'[^\s()!+"]+')
_WORDS = re.compile(r'[()!+]|"(?:[^"]|"")*"|[^\s()!+"]+|"')


@dataclass(frozen=True)
class Tree:
    """A join operator; spans of children do not overlap.

    >>> tree = Tree((Tree((0, 1)), 2))
    >>> tree.span, [below.span for below in tree.below()]
    (7, [3])
    >>> tree.text(["a", "b", "c"])
    '((a b) c)'
    """

    children: tuple[Tree | int, ...]
    late: bool = False
    """Whether this operator leaves its selections to the operators above it."""

    grouped: bool = False
    """Whether result tuples that no later step can tell apart become one."""

    def __repr__(self) -> str:
        flags = f"{', late=True' if self.late else ''}{', grouped=True' if self.grouped else ''}"
        return f"Tree(children={self.children}{flags})"

    def __post_init__(self) -> None:
        sources = list(self.sources())
        assert len(sources) == len(set(sources)), "a source is there twice"
        idle = [c for c in self.children if isinstance(c, Tree) and len(c.children) == 1 and not c.grouped]
        assert not idle, "an operator below joins nothing"

    @cached_property
    def span(self) -> int:
        """The sources below this operator, as a bit mask."""
        return sum(1 << s for s in self.sources())

    def sources(self) -> Iterator[int]:
        """The sources below this operator, in the order in which they are written."""
        for child in self.children:
            yield from (child,) if isinstance(child, int) else child.sources()

    def below(self) -> Iterator[Tree]:
        """The operators below this one, children before parents: their results are materialised."""
        for child in self.children:
            if isinstance(child, Tree):
                yield from child.below()
                yield child

    def text(self, aliases: Sequence[str]) -> str:
        """The tree as users write it."""
        inner = (_quoted(aliases[c]) if isinstance(c, int) else c.text(aliases) for c in self.children)
        return f"({' '.join(inner)}){'!' if self.late else ''}{'+' if self.grouped else ''}"


def span_of(child: Tree | int) -> int:
    """The sources of a child, as a bit mask."""
    return 1 << child if isinstance(child, int) else child.span


def state_of(child: Tree | int) -> int:
    """A number that identifies the SteM of a child: its span, or the complement of the span for an operator over one
    source."""
    return ~child.span if isinstance(child, Tree) and len(child.children) == 1 else span_of(child)


def passed(tree: Tree, selections: Sequence[int]) -> dict[int, int]:
    """The selections that the results of each operator have passed, as a bit mask, by the operator's span, children
    before parents. `selections` has for each selection the sources that it needs.

    >>> passed(Tree((Tree((0, 1), late=True), 2)), [0b11, 0b100]), passed(Tree((Tree((0, 1)), 2)), [0b11, 0b100])
    ({3: 0, 7: 3}, {3: 1, 7: 3})
    """
    found: dict[int, int] = {}
    for operator in (*tree.below(), tree):
        done = sum(found[c.span] for c in operator.children if isinstance(c, Tree))
        if not operator.late:
            done |= sum(1 << i for i, needed in enumerate(selections) if not needed & ~operator.span)
        found[operator.span] = done
    return found


def weighted(tree: Tree) -> frozenset[int]:
    """The spans of operators below the root whose tuples have weights: those that group, and those above them.

    >>> sorted(weighted(Tree((Tree((Tree((0, 1), grouped=True), 2)), Tree((3, 4))))))
    [3, 7]
    """
    return frozenset(t.span for t in tree.below() if t.grouped or any(inner.grouped for inner in t.below()))


def mjoin(sources: int) -> Tree:
    """The multi-way join: one operator over all sources."""
    return Tree(tuple(range(sources)))


def shape(plan: str, aliases: Sequence[str]) -> Tree:
    """The tree for a value of the setting `plan`; `auto` begins with a multi-way join."""
    return mjoin(len(aliases)) if plan in ("auto", "mjoin") else parse_tree(plan, aliases)


def check_asks(asks: bool, tree: Tree) -> None:
    """SettingError if tables are asked and the plan has intermediate states: they would keep forgotten answers."""
    if asks and any(isinstance(child, Tree) for child in tree.children):
        raise SettingError("a query with tables that are asked has no intermediate states; leave plan out")


def parse_tree(text: str, aliases: Sequence[str]) -> Tree:
    """Parse a tree, which must have every alias exactly once; SettingError if it is not one.

    >>> parse_tree("((a b) c)", ["a", "b", "c"])
    Tree(children=(Tree(children=(0, 1)), 2))
    >>> parse_tree("((a b)! c)", ["a", "b", "c"])
    Tree(children=(Tree(children=(0, 1), late=True), 2))
    >>> parse_tree("((a b)+ c)", ["a", "b", "c"])
    Tree(children=(Tree(children=(0, 1), grouped=True), 2))
    """
    numbers = {alias.lower(): number for number, alias in enumerate(aliases)}
    left = dict(numbers)
    open_nodes: list[list[Tree | int]] = [[]]
    before = ""
    for written in _WORDS.findall(text):
        word = written[1:-1].replace('""', '"') if len(written) > 1 and written[0] == '"' else written
        if written == "(":
            open_nodes.append([])
        elif written == ")":
            if len(open_nodes) == 1:
                raise SettingError(f"plan={text}: one ) too many")
            children = open_nodes.pop()
            if not children:
                raise SettingError(f"plan={text}: () has nothing in it")
            open_nodes[-1].append(Tree(tuple(children)) if len(children) > 1 else children[0])
        elif written in ("!", "+"):
            last = open_nodes[-1][-1] if before == ")" or {before, written} == {"!", "+"} else None
            if isinstance(last, int) and written == "+":
                last = Tree((last,))
            if not isinstance(last, Tree):
                raise SettingError(f"plan={text}: {written} does not stand behind an operator")
            open_nodes[-1][-1] = replace(last, late=True) if written == "!" else replace(last, grouped=True)
        elif word.lower() in left:
            open_nodes[-1].append(left.pop(word.lower()))
        elif word.lower() in numbers:
            raise SettingError(f"plan={text}: {word} is there twice")
        else:
            raise SettingError(f"plan={text}: there is no alias {word}; the query has {', '.join(aliases)}")
        before = written
    if len(open_nodes) > 1:
        raise SettingError(f"plan={text}: one ( is never closed")
    if left:
        raise SettingError(f"plan={text}: {', '.join(aliases[n] for n in left.values())} is missing")
    whole = open_nodes[0]
    tree = whole[0] if len(whole) == 1 and isinstance(whole[0], Tree) else Tree(tuple(whole))
    if tree.late:
        raise SettingError(f"plan={text}: there is nothing above the ! of the whole tree")
    if tree.grouped:
        raise SettingError(f"plan={text}: there is nothing above the + of the whole tree")
    return tree


def _quoted(alias: str) -> str:
    return alias if _PLAIN.fullmatch(alias) else '"' + alias.replace('"', '""') + '"'
