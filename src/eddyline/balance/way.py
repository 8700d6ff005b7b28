"""How groups move: by moving state (002, chapter 22) or by parallel track (chapter 21).

With *moving state* the receiver opens the rows of the groups from the log before the next batch; the sender has nothing
to do with the groups from then on. With *parallel track* both slots get the groups' rows, until the last row that only
the sender has is out of every window. In the dissertation that takes two windows where joins follow each other (21.1),
because an intermediate state there keeps tuples for a window of its own; here a tuple dies with its oldest row.

The first costs rows that are opened, the second rows that are taken in twice. Where a lot of state is there and little
comes, the second costs less (23.3). But it relieves the sender only in the end, and meanwhile both slots hold the
groups, so a move for memory is always made by moving state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eddyline.balance.decided import Balanced, MoveWay

BalanceMode = Literal["auto", "moving-state", "parallel-track", "off"]
"""The setting `balance`."""


@dataclass(frozen=True)
class ChosenWay:
    """How groups move, and why."""

    way: MoveWay
    why: str


def chosen_way(
    mode: BalanceMode,
    measure: Balanced,
    rows: float,
    arriving: float,
    window: float | None,
    open_cost: float,
    refusal: str = "a parallel track would never end: rows do not expire",
) -> ChosenWay:
    """How to move groups that have `rows` rows in memory and get `arriving` rows a second, in a query with windows of
    at most `window` seconds (None: a track is not possible, for the reason `refusal`).
    Opening a row costs `open_cost` times as much as taking it in.

    >>> chosen_way("auto", "cpu", rows=1e6, arriving=100, window=60, open_cost=0.3).way
    'parallel-track'
    >>> chosen_way("auto", "cpu", rows=1e6, arriving=1e4, window=60, open_cost=0.3)
    ChosenWay(way='moving-state', why='opening 1e+06 rows costs as much as 3e+05, and 6e+05 would be taken in twice')
    """
    if mode == "off":
        raise ValueError("no group moves with balance=off")
    if mode == "moving-state":
        return ChosenWay(mode, f"balance={mode}")
    if window is None:
        return ChosenWay("moving-state", refusal)
    if measure == "memory":
        return ChosenWay("moving-state", "memory must be free soon")
    if mode == "parallel-track":
        return ChosenWay(mode, f"balance={mode}")
    twice, opened = arriving * window, open_cost * rows
    why = f"opening {rows:.3g} rows costs as much as {opened:.3g}, and {twice:.3g} would be taken in twice"
    return ChosenWay("moving-state" if opened <= twice else "parallel-track", why)
