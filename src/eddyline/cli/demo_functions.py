"""The user functions of `eddyline demo`: two checks of a payment that cost more than a probe, as a small model would.

They are used like any module with functions of your own: `--udf eddyline.cli.demo_functions`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.query.udf import udf

_ROUNDS = 60
"""How much arithmetic stands in for a model."""


@udf(returns="BOOLEAN")
def odd_amount(amount: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Amounts above 95."""
    _work(amount)
    return amount > 95


@udf(returns="BOOLEAN")
def odd_device(device: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Devices above 95."""
    _work(device)
    return device > 95


def _work(values: NDArray[np.float64]) -> None:
    for _ in range(_ROUNDS):
        np.sin(values)
