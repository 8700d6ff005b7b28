"""The rules of the optimizer: each is a function from a situation to a proposal or None, in a file of its own name.

They are called one after the other, and the next rule sees the best proposal so far. The first three need no search: a
plan lost its trial, a change has more steps, or the library knows these statistics. The others run when it is time to
look for a plan. `search` finds the shape; `group_early` and `hold_back` put marks on it, and also try shapes that pay
only with marks.
"""

from __future__ import annotations

from collections.abc import Callable

from eddyline.optimizer.rules.group_early import group_early
from eddyline.optimizer.rules.hold_back import hold_back
from eddyline.optimizer.rules.next_step import next_step
from eddyline.optimizer.rules.recall import recall
from eddyline.optimizer.rules.search import search
from eddyline.optimizer.rules.undo import undo
from eddyline.optimizer.situation import Proposal, Situation

Rule = Callable[[Situation], Proposal | None]

RULES: tuple[Rule, ...] = (undo, next_step, recall, search, group_early, hold_back)
