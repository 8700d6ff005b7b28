"""The rules of the optimizer: each is a function from a situation to a proposal or None, in a file of its own name.

They are asked one after the other, and what one proposes is the best so far for the next. The first three answer when
there is nothing to search for: a plan lost its trial, a change has more steps, the library knows these statistics. The
others are for when it is time to look. `search` finds the shape; `group_early` and `hold_back` put marks on it, and
look at shapes that pay only with marks.
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
