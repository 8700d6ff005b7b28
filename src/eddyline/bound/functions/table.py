"""The entries of the function table, and the helpers that every group of functions uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from eddyline.bound.expr import Expr

Resolve = Callable[[tuple[Expr, ...], str], Expr]
"""Arguments as they were written and the variant -> the typed call, or TypeMismatch."""


@dataclass(frozen=True)
class Function:
    """One function: how it is written, what it gives, one sentence, and how a call of it is made."""

    name: str
    group: str
    takes: str
    gives: str
    doc: str
    resolve: Resolve = field(repr=False)
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names -> the variant they stand for (`year(x)` is `extract` with variant `year`); mostly empty."""

    def alias_variant(self, alias: str) -> str:
        """The variant that an alias stands for."""
        return self.aliases.get(alias, "")


USER: dict[str, Function] = {}
"""Functions registered with `el.udf`, by lower-case name."""
