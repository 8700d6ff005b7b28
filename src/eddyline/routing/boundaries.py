"""Computes the boundaries of SLIDE at which tuples count, from the windows of their components.

A component counts at T if T - W < ts <= T, which is a range of boundaries; with CUMULATE only up to the end of its
piece. A tuple counts where all its components do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eddyline.bound.model import BoundQuery, WindowKind
from eddyline.bound.slide import Slide
from eddyline.state.column import RowNumbers
from eddyline.state.rows import Rows, newest

NEVER_ENDS = np.iinfo(np.int64).max


def boundaries(
    query: BoundQuery, slide: Slide, bases: Sequence[Rows], rows: Mapping[int, RowNumbers], size: int
) -> tuple[RowNumbers, RowNumbers]:
    """The first and the last boundary of each tuple, as times; ROWS windows are ignored. If the first is after the
    last, there is none."""
    first = slide.first_from(newest(bases, rows, size))
    last = np.full(size, NEVER_ENDS)
    for source, of_source in rows.items():
        window = query.sources[source].window
        if window.kind is WindowKind.RANGE:
            times = bases[source].times.values[of_source]
            leaves = times + (window.size - 1) if window.pieces is None else window.pieces.first_from(times)
            np.minimum(last, slide.last_upto(leaves), out=last)
    return first, last
