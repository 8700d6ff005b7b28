"""Which executor each slot's turns should run on: the one where the slot was before, because its arena is there.

A slot keeps its executor as long as there is that executor. If the executor is lost, its slots get others, and stay
there. An executor gives slots away only if it has more of them than cores, and another one has fewer for each core
even with the slot: else turns would wait for each other in every batch, and a slot that moves is rebuilt from the log
once. The slots that came last go first. While the executors stay the same, nothing moves.

A wrong choice costs time only: a slot that finds no arena is rebuilt from the log (protocol/restoring.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExecutorPlace:
    """An executor of Spark."""

    id: str
    host: str
    cores: int


class Placement:
    """The executors of the slots of one job."""

    def __init__(self) -> None:
        self._of: dict[int, ExecutorPlace] = {}
        """By slot, in the order in which slots came to their executors."""

    def place(self, executors: Sequence[ExecutorPlace], slots: int) -> list[ExecutorPlace]:
        """The executor of each slot, now that there are these executors, at least one, and so many slots.

        >>> a, b, c = (ExecutorPlace(id, f"host-{id}", 2) for id in "abc")
        >>> placement = Placement()
        >>> "".join(executor.id for executor in placement.place([a, b], slots=4))
        'abab'
        >>> "".join(executor.id for executor in placement.place([b, c], slots=4))  # a is lost
        'cbcb'
        """
        there = {executor.id: executor for executor in executors}
        self._of = {slot: executor for slot, executor in self._of.items() if slot < slots}
        lost = {slot: executor for slot, executor in self._of.items() if executor.id not in there}
        self._of = {slot: there[executor.id] for slot, executor in self._of.items() if executor.id in there}
        for slot in range(slots):
            if slot not in self._of:
                self._of[slot] = self._least(executors, lost.get(slot))
        for slot, executor in reversed(list(self._of.items())):
            other = self._least(executors, executor)
            if 1.0 < self._load(executor) > self._load(other, 1):
                del self._of[slot]
                self._of[slot] = other
        return [self._of[slot] for slot in range(slots)]

    def _load(self, executor: ExecutorPlace, more: int = 0) -> float:
        """The slots of an executor, and so many `more`, for each of its cores."""
        return (more + sum(other.id == executor.id for other in self._of.values())) / max(1, executor.cores)

    def _least(self, executors: Sequence[ExecutorPlace], before: ExecutorPlace | None) -> ExecutorPlace:
        """The executor for a slot that was at another one `before`. Executors of one host share its arenas, so one of
        the same host is best if it has a free core."""

        def rank(executor: ExecutorPlace) -> tuple[bool, bool, float]:
            load = self._load(executor, 1)
            crowded = load > 1.0
            return crowded, not crowded and (before is None or executor.host != before.host), load

        return min(executors, key=rank)
