"""Which results are missing: the rule beside a simulation of one group that remembers every row and every result."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.spill.generations import NEVER, Generations
from tests.support.properties import examples

EVENTS = st.lists(st.sampled_from(["a", "b", "c", "leave", "follow", "sweep", "cool", "warm"]), max_size=16)
"""Rows of two sources that lead (a, b) and of one that follows (c), and moves of their groups: both leave, and may stay
out and stay in again; the leading one is swept."""
LEADS, FOLLOWS, LEADING = 7, 19, 10


@given(EVENTS)
@examples(500)
def test_what_the_rule_calls_missing_is_what_was_not_made(events: list[str]) -> None:
    generations, epoch = Generations(), 0
    came: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    memory: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
    made: set[tuple[int, ...]] = set()

    def missing() -> set[tuple[int, ...]]:
        found = set()
        for row in product(*(range(len(came[s])) for s in "abc")):
            epochs = [came[s][r] for s, r in zip("abc", row, strict=True)]
            left = generations.left_at(np.array([LEADS, LEADS, FOLLOWS]), np.array(epochs))
            clean = generations.clean_of(np.array([LEADS]))[0]
            if max(epochs) >= left.min() and max(epochs) >= clean:
                found.add(row)
        return found

    def move(*groups: int, cool: bool = False) -> None:
        nonlocal generations, epoch
        epoch += 1
        generations = generations.leave(groups, epoch, LEADING).cool(groups if cool else ())
        for group, sources in ((LEADS, "ab"), (FOLLOWS, "c")):
            for source in sources if group in groups else "":
                memory[source].clear()
                if cool:
                    cold.add(source)

    cold: set[str] = set()
    for event in events:
        if event == "leave":
            move(LEADS)
        elif event == "follow":
            move(FOLLOWS)
        elif event == "cool":
            move(LEADS, FOLLOWS, cool=True)
        elif event in ("sweep", "warm"):
            epoch += 1
            made |= missing()
            if generations.left:
                generations = generations.swept(tuple(generations.clean), epoch)
            if event == "warm":
                generations = generations.warm((LEADS, FOLLOWS), epoch)
                cold.clear()
        else:
            new = len(came[event])
            came[event].append(epoch)
            if event not in cold:
                memory[event].add(new)
                made |= {row for row in product(*(memory[s] for s in "abc")) if row["abc".index(event)] == new}
        everything = set(product(*(range(len(came[s])) for s in "abc")))
        assert missing() == everything - made


def test_groups_that_never_left() -> None:
    none = Generations()
    assert none.left_at(np.array([1, 2]), np.array([0, 5])).tolist() == [NEVER, NEVER]
    assert none.clean_of(np.array([1])).tolist() == [NEVER]
    some = none.leave((1,), 3, leading=2)
    assert some.on_disk(np.array([1, 1, 2]), np.array([2, 3, 2])).tolist() == [True, False, False]
    assert some.whole((1,), leading=2) == none
    both = some.leave((5,), 4, leading=2)
    assert both.clean == {0: 4, 1: 3}, "a leading group may miss results when rows of another source leave"
    assert both.whole((1,), leading=2).clean == {0: 4, 1: 3} and both.whole((1, 5), leading=2) == none
