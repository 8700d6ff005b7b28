"""Chooses the way to another plan: the strategy, and whether to change in one step, in several, or not now.

Moving state is the usual strategy: it finishes sooner. Parallel track is taken where its double work is less. That
happens where there is hardly any time for moving states: then many rows arrive meanwhile, and they have to be moved
too. Neither strategy holds results back for long, so smoothness does not matter here. Nor does memory: the rows are
shared, and the new states are about as large in both. At its end a parallel track holds everything that its states will
hold, and moved states hold the live tuples.

Disjoint boxes cost the same whether they are moved together or one after the other, because the states of one do not
depend on the other. But together, all new states exist before any old one is dropped. So boxes are moved together
unless there is no room for that. Then they are moved one after the other; the first is the one that leaves the least
memory in use. Plans with marks are always changed as a whole, because a mark affects all operators above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from eddyline.migration.boxes import Box, boxes
from eddyline.optimizer.migration_costs import PlanChange, Predicted, moving_state, parallel_track
from eddyline.optimizer.pricing import Pricing
from eddyline.optimizer.shapes import is_marked, shape_of, tree_of
from eddyline.plan.tree import Tree
from eddyline.setting_kinds import size_text


@dataclass(frozen=True)
class MoveConditions:
    """The conditions under which a plan is changed: the setting `migration`; the CPU seconds per second of event time
    and the bytes that the running plan takes; the memory limit (None: no limit); the seconds that rows of each source
    live (0 for a table) and come late; and the seconds for which results may be held back (None: no limit)."""

    asked: str
    cpu: float
    held: float
    limit: float | None
    lives: Sequence[float]
    lateness: float
    pause: float | None

    @property
    def room(self) -> float:
        """Bytes left below the memory limit."""
        return inf if self.limit is None else self.limit - self.held


@dataclass(frozen=True)
class Move:
    """A change to a tree by one strategy, with its predicted cost."""

    tree: Tree
    parallel: bool
    predicted: Predicted
    why: str

    @property
    def figures(self) -> Mapping[str, float]:
        """The predicted cost, by name."""
        return self.predicted.figures()

    @property
    def text(self) -> str:
        """Format for display."""
        how, costs = "parallel track" if self.parallel else "moving state", self.predicted
        takes = f"{costs.seconds:.3g} s of CPU in {costs.duration:.3g} s, {costs.rows:.0f} rows"
        return f"by {how}, {self.why}: {takes}, {size_text(int(costs.bytes))} more"


def choose_move(pricing: Pricing, old: Tree, new: Tree, now: MoveConditions) -> Move:
    """The whole way or, if there is no room for it, one step of it."""
    whole = _move(pricing, old, new, now)
    if whole.predicted.bytes <= now.room:
        return whole
    differ = [] if is_marked(old) or is_marked(new) else boxes(old, new)
    steps = [_move(pricing, old, applied(old, new, box), now) for box in differ]
    fit = [step for step in steps if step.predicted.bytes <= now.room]
    return min(fit, key=lambda step: pricing.cost(shape_of(step.tree)).memory, default=whole)


def applied(old: Tree, new: Tree, box: Box) -> Tree:
    """The old plan with one of the boxes replaced by that of the new plan; neither plan has marks.

    >>> old, new = Tree((Tree((0, 1, 2)), Tree((3, 4, 5)))), Tree((Tree((Tree((0, 1)), 2)), Tree((Tree((3, 4)), 5))))
    >>> applied(old, new, boxes(old, new)[0]).text("abcdef")
    '(((a b) c) (d e f))'
    """
    before, after = shape_of(old), shape_of(new)
    kept = {span: children for span, children in before.items() if span not in box.dropped}
    return tree_of({**kept, **{span: after[span] for span in (*box.fresh, box.top)}})


def _move(pricing: Pricing, old: Tree, new: Tree, now: MoveConditions) -> Move:
    change = PlanChange(pricing, old, new)
    state = moving_state(change, now.cpu, now.pause)
    if now.pause is None:
        return Move(new, False, state, "at once")
    track = parallel_track(change, now.lives, now.lateness)
    if now.asked in ("moving-state", "parallel-track"):
        parallel = now.asked == "parallel-track"
        return Move(new, parallel, track if parallel else state, "as was asked for")
    if track.seconds < state.seconds:
        return Move(new, True, track, f"since moving state takes {state.seconds:.3g} s of CPU")
    return Move(new, False, state, f"since parallel track takes {track.seconds:.3g} s of CPU")
