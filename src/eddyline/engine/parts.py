"""Where the parts of a slot are put together that its plan does not need: a new one is a line in `MAKERS`."""

from __future__ import annotations

from collections.abc import Callable

from eddyline.bound.model import BoundQuery
from eddyline.engine.executor import Executor
from eddyline.spill.accounts import GroupAccounts
from eddyline.state.part import Part


def accounts(query: BoundQuery, executor: Executor) -> Part | None:
    """The accounts of partition groups, if groups can leave memory."""
    axis = executor.spill_axis
    return None if axis is None else GroupAccounts(axis, executor.source_stems)


MAKERS: tuple[Callable[[BoundQuery, Executor], Part | None], ...] = (accounts,)


def made(query: BoundQuery, executor: Executor) -> tuple[Part, ...]:
    """The parts for a query."""
    return tuple(part for make in MAKERS if (part := make(query, executor)) is not None)
