"""How many examples Hypothesis draws of a property.

`./run test` draws the same ones each time, so that it fails only for what was changed. EDDYLINE_EXAMPLES=N draws N
times as many, new ones, and prints how to repeat those that fail.
"""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

TIMES = int(os.environ.get("EDDYLINE_EXAMPLES", "0"))


def examples(number: int, **more: Any) -> settings:
    """The settings of a property that is tried with so many examples."""
    return settings(max_examples=number * (TIMES or 1), deadline=None, derandomize=not TIMES, print_blob=True, **more)
