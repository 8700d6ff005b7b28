"""The steps that a tuple may take: probe a SteM, in one of three ways, or apply a selection."""

from __future__ import annotations

from dataclasses import dataclass

from eddyline.bound.expr import Expr
from eddyline.plan.bindings import IndexBinding
from eddyline.plan.graph import Equality


@dataclass(frozen=True)
class KeyAccess:
    """Look up the target's index `on` with the key `partner_on` of a component the tuple has."""

    on: tuple[Expr, ...]
    partner: int
    partner_on: tuple[Expr, ...]


@dataclass(frozen=True)
class RangeAccess:
    """Look up the target's order key: each limit is (op, partner, its key, offset), read as `on op key + offset`."""

    on: Expr
    limits: tuple[tuple[str, int, Expr, int], ...]


@dataclass(frozen=True)
class ListAccess:
    """Look at every row."""


@dataclass(frozen=True)
class Probe:
    """Probe SteM number `target`, which has tuples of `span`; verify the equalities and check the predicates that the
    access does not decide."""

    target: int
    span: int
    access: KeyAccess | RangeAccess | ListAccess
    equalities: tuple[Equality, ...]
    predicates: tuple[Expr, ...]
    asks: tuple[IndexBinding, ...] = ()
    """The ways to ask the table of the SteM, if it is one that is asked, for the rows that it may lack."""
    is_asked: bool = False
    """Whether it is the SteM of a table that is asked. If there is no way to ask, its scan brings all rows."""
    ahead: tuple[tuple[IndexBinding, ...], ...] = ()
    """The ways to ask each of the other tables that the tuple lacks: while it waits for one, it can ask them too."""
    asks_unmatched: bool = False
    """Whether a tuple that finds a row need not ask: rows of the table come with all others that have the same key."""


@dataclass(frozen=True)
class Select:
    """Apply selection number `selection`."""

    selection: int
    predicate: Expr


Step = Probe | Select
