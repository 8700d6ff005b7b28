"""Which results are missing: the rule beside a simulation of one group that remembers every row and every result."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eddyline.spill.generations import NEVER, Generations

EVENTS = st.lists(st.sampled_from(["a", "b", "c", "leave", "sweep"]), max_size=14)
"""Rows of two sources that can leave memory (a, b) and of one that stays (c), and moves of their group."""


@given(EVENTS)
@settings(deadline=None)
def test_what_the_rule_calls_missing_is_what_was_not_made(events: list[str]) -> None:
    generations, epoch = Generations(), 0
    came: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    memory: dict[str, set[int]] = {"a": set(), "b": set(), "c": set()}
    made: set[tuple[int, ...]] = set()

    def missing() -> set[tuple[int, ...]]:
        found = set()
        for row in product(*(range(len(came[s])) for s in "abc")):
            epochs = [came[s][r] for s, r in zip("abc", row, strict=True)]
            left = generations.left_at(np.full(2, 7), np.array(epochs[:2]))
            clean = generations.clean_of(np.array([7]))[0]
            if max(epochs) >= left.min() and max(epochs) >= clean:
                found.add(row)
        return found

    for event in events:
        if event == "leave":
            epoch += 1
            generations = generations.leave((7,), epoch)
            memory["a"], memory["b"] = set(), set()
        elif event == "sweep":
            epoch += 1
            made |= missing()
            if generations.left:
                generations = generations.swept((7,), epoch)
        else:
            new = len(came[event])
            came[event].append(epoch)
            memory[event].add(new)
            made |= {row for row in product(*(memory[s] for s in "abc")) if row["abc".index(event)] == new}
        everything = set(product(*(range(len(came[s])) for s in "abc")))
        assert missing() == everything - made


def test_groups_that_never_left() -> None:
    none = Generations()
    assert none.left_at(np.array([1, 2]), np.array([0, 5])).tolist() == [NEVER, NEVER]
    assert none.clean_of(np.array([1])).tolist() == [NEVER]
    some = none.leave((1,), 3)
    assert some.on_disk(np.array([1, 1, 2]), np.array([2, 3, 2])).tolist() == [True, False, False]
    assert some.whole((1,)) == none
