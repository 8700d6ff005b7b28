"""Which way to another plan: by which strategy, in one step or in several, or not now.

Moving state is the usual one: it is done sooner. Parallel track is taken where what it runs twice is less work. That is
so where there is hardly any time for moving states: then much comes meanwhile, which has to be moved too. Neither holds
results back for long, so smoothness decides nothing; nor does memory. The rows are shared, and the new states of a
parallel track have, at its end, all that they will hold, where those that were moved have what is live.

Boxes that are disjoint cost the same together or one after the other: the states that one makes are no business of the
other. But together all new states are there before any old one goes. So they are moved together unless there is no room
for that, and then one after the other, the one first that leaves the least memory in use. Plans with marks are always
changed as a whole: what a mark changes reaches through all operators above it.
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
from eddyline.settings import size_text


@dataclass(frozen=True)
class MoveConditions:
    """Under which a plan is changed: the setting `migration`, CPU seconds per second of event time and bytes that the
    running plan takes, the memory limit (None is none), seconds that rows of each source live (0 for a table) and come
    late, and that results may be held back (None: as long as it takes)."""

    asked: str
    cpu: float
    held: float
    limit: float | None
    lives: Sequence[float]
    lateness: float
    pause: float | None

    @property
    def room(self) -> float:
        """Bytes that are left."""
        return inf if self.limit is None else self.limit - self.held


@dataclass(frozen=True)
class Move:
    """To a tree, by a strategy, and what that is predicted to take."""

    tree: Tree
    parallel: bool
    predicted: Predicted
    why: str

    @property
    def figures(self) -> Mapping[str, float]:
        """What is predicted, by name."""
        return self.predicted.figures()

    @property
    def text(self) -> str:
        """Format for display."""
        how, costs = "parallel track" if self.parallel else "moving state", self.predicted
        takes = f"{costs.seconds:.3g} s of CPU in {costs.duration:.3g} s, {costs.rows:.0f} rows"
        return f"by {how}, {self.why}: {takes}, {size_text(int(costs.bytes))} more"


def choose_move(pricing: Pricing, old: Tree, new: Tree, now: MoveConditions) -> Move:
    """The whole way or, where there is no room for it, a step of it."""
    whole = _move(pricing, old, new, now)
    if whole.predicted.bytes <= now.room:
        return whole
    differ = [] if is_marked(old) or is_marked(new) else boxes(old, new)
    steps = [_move(pricing, old, applied(old, new, box), now) for box in differ]
    fit = [step for step in steps if step.predicted.bytes <= now.room]
    return min(fit, key=lambda step: pricing.cost(shape_of(step.tree)).memory, default=whole)


def applied(old: Tree, new: Tree, box: Box) -> Tree:
    """The old plan with one of the boxes as the new plan has it; neither has marks.

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
