"""Computes the boundaries of SLIDE at which tuples count, from the windows of their components.

A component counts at T if T - W < ts <= T, which is a range of boundaries; a tuple counts where all its components do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.state.column import RowNumbers
from eddyline.state.rows import Rows, newest

NEVER_ENDS = np.iinfo(np.int64).max


def boundaries(
    query: BoundQuery, slide: int, bases: Sequence[Rows], rows: Mapping[int, RowNumbers], size: int
) -> tuple[RowNumbers, RowNumbers]:
    """The first and the last boundary of each tuple, as times; ROWS windows are ignored. If the first is after the
    last, there is none."""
    first = -(-newest(bases, rows, size) // slide) * slide
    last = np.full(size, NEVER_ENDS)
    for source, of_source in rows.items():
        window = query.sources[source].window
        if window.kind is WindowKind.RANGE:
            leaves = bases[source].times.values[of_source] + (window.size - 1)
            np.minimum(last, leaves // slide * slide, out=last)
    return first, last
