"""User functions whose cost and answer are chosen: the answer is the row's value, the cost a number of passes.

A pass is a few dependent instructions on the row (a xorshift, which no compiler shortens), so cost grows linearly with
passes and rows, whatever the packet. `passes` may be changed while a query runs: an operator that turns expensive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eddyline.bound.udf import udf
from eddyline.kernels.jit import kernel


class Costly:
    """The functions costly_0, costly_1 ..., each true where its argument is not 0."""

    def __init__(self, passes: Sequence[int]) -> None:
        self.passes = list(passes)
        for number in range(len(self.passes)):
            udf(returns="BOOLEAN", name=f"costly_{number}")(self._function(number))

    def _function(self, number: int) -> Callable[[NDArray[np.int64]], NDArray[np.bool_]]:
        def costly(values: NDArray[np.int64]) -> NDArray[np.bool_]:
            answers = np.empty(values.size, np.bool_)
            _answer(values, self.passes[number], answers)
            return answers

        return costly

    def conjuncts(self, alias: str, order: Sequence[int] | None = None) -> str:
        """A WHERE with all functions over the columns c0, c1 ... of an alias, in this order."""
        numbers = range(len(self.passes)) if order is None else order
        return " AND ".join(f"costly_{i}({alias}.c{i})" for i in numbers)


@kernel
def _answer(values: Any, passes: Any, answers: Any) -> None:
    for i in range(values.size):
        x = values[i] | 2
        for _ in range(passes):
            x ^= x << 13
            x ^= (x >> 7) & 0x1FFFFFFFFFFFFFF
            x ^= x << 17
        answers[i] = (x != 0) & (values[i] != 0)
