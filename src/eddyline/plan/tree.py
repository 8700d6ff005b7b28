"""Plan shapes: a tree of join operators over the sources of a query.

A leaf is a source; an inner node is a join operator whose children it joins with each other, each child with a SteM: a
base SteM for a source, an intermediate one for what the operator below gives. One operator over all sources is the
multi-way join, operators with two children each a binary tree, everything between a hybrid tree. In text operators are
parentheses around aliases: ((a b) c). An alias that is not plain stands in double quotes, as in SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from eddyline.errors import SettingError

_PLAIN = re.compile(r'[^\s()"]+')
_WORDS = re.compile(r'[()]|"(?:[^"]|"")*"|[^\s()"]+|"')


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

    def __post_init__(self) -> None:
        sources = list(self.sources())
        assert len(sources) == len(set(sources)), "a source is there twice"
        assert all(isinstance(c, int) or len(c.children) > 1 for c in self.children), "an operator below joins nothing"

    @cached_property
    def span(self) -> int:
        """Its sources, as a bit mask."""
        return sum(1 << s for s in self.sources())

    def sources(self) -> Iterator[int]:
        """Its sources, as written."""
        for child in self.children:
            yield from (child,) if isinstance(child, int) else child.sources()

    def below(self) -> Iterator[Tree]:
        """The operators below it, each after those below itself: what they give is materialised."""
        for child in self.children:
            if isinstance(child, Tree):
                yield from child.below()
                yield child

    def text(self, aliases: Sequence[str]) -> str:
        """As it is written."""
        inner = (_quoted(aliases[c]) if isinstance(c, int) else c.text(aliases) for c in self.children)
        return f"({' '.join(inner)})"


def span_of(child: Tree | int) -> int:
    """The sources of a child, as a bit mask."""
    return 1 << child if isinstance(child, int) else child.span


def mjoin(sources: int) -> Tree:
    """One operator over all."""
    return Tree(tuple(range(sources)))


def shape(plan: str, aliases: Sequence[str]) -> Tree:
    """What the setting `plan` asks for; `auto` begins as a multi-way join."""
    return mjoin(len(aliases)) if plan in ("auto", "mjoin") else parse_tree(plan, aliases)


def parse_tree(text: str, aliases: Sequence[str]) -> Tree:
    """A tree of all aliases, each once.

    >>> parse_tree("((a b) c)", ["a", "b", "c"])
    Tree(children=(Tree(children=(0, 1)), 2))
    """
    numbers = {alias.lower(): number for number, alias in enumerate(aliases)}
    left = dict(numbers)
    open_nodes: list[list[Tree | int]] = [[]]
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
        elif word.lower() in left:
            open_nodes[-1].append(left.pop(word.lower()))
        elif word.lower() in numbers:
            raise SettingError(f"plan={text}: {word} is there twice")
        else:
            raise SettingError(f"plan={text}: there is no alias {word}; the query has {', '.join(aliases)}")
    if len(open_nodes) > 1:
        raise SettingError(f"plan={text}: one ( is never closed")
    if left:
        raise SettingError(f"plan={text}: {', '.join(aliases[n] for n in left.values())} is missing")
    whole = open_nodes[0]
    if len(whole) == 1 and isinstance(whole[0], Tree):
        return whole[0]
    return Tree(tuple(whole))


def _quoted(alias: str) -> str:
    return alias if _PLAIN.fullmatch(alias) else '"' + alias.replace('"', '""') + '"'
