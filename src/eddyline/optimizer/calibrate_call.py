"""The fixed cost of a call, measured on this machine: the cost of a build, or of a packet's step with its way through
the queues, however few rows it has.

An eddy takes in the same rows of a join twice, in small and in large slices. The slices differ in the number of calls
and in nothing else, so the difference in time over the difference in calls is the fixed cost.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import SourceColumn
from eddyline.bound.functions import call
from eddyline.bound.model import BoundQuery, BoundSource, BoundStream, Output, Window, WindowKind
from eddyline.plan.plan import Plan
from eddyline.routing.eddy import Eddy
from eddyline.routing.packet import Packet
from eddyline.routing.tuning import DEFAULT
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.stem import SteM

SMALL, LARGE, ROUNDS = 32, 512, 3
_ROWS = 2048
_SECOND = 1_000_000
_LEAST = 1e-7
"""No call costs less, in seconds: a clock that shows less does not count the time of this thread."""


def calibrate_call(clock: Callable[[], float]) -> float:
    """The fixed cost of a call, in seconds of the clock; the default of the tuning if the clock does not show it."""
    arena = Arena()
    try:
        plan = Plan(_query())
        stems = [SteM(arena, layout) for layout in plan.layouts]
        eddy = Eddy(plan, stems, {}, Settings(router="fixed"), ErrorCount(), _forget, clock)

        def taken_in(rows: int) -> tuple[float, int]:
            """Seconds and calls for all rows, in slices of `rows` rows."""
            times = np.arange(_ROWS)
            for stem in stems:
                stem.rows.append({e: pa.array(times) for e in stem.layout.keys}, times, None)
            start, calls = clock(), eddy.work.calls
            for _ in range(_ROWS // rows):
                for source in range(len(stems)):
                    eddy.build(source, rows)
                    eddy.run()
            eddy.flush()
            seconds, calls = clock() - start, eddy.work.calls - calls + len(stems) * _ROWS // rows
            for stem in stems:
                stem.expire(_ROWS)
                stem.commit()
            return seconds, calls

        def measured() -> float:
            (small, many), (large, few) = taken_in(SMALL), taken_in(LARGE)
            return (small - large) / (many - few)

        measured()  # compiles and imports before the measurement
        found = median(measured() for _ in range(ROUNDS))
    finally:
        arena.close()
    return found if found >= _LEAST else DEFAULT.call


def _forget(packet: Packet) -> None:
    """Results are not looked at."""


def _query() -> BoundQuery:
    schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
    stream, window = BoundStream("s", schema, "ts"), Window(WindowKind.RANGE, _SECOND)
    keys = [SourceColumn(source, "k", pa.int64()) for source in (0, 1)]
    sources = tuple(BoundSource(alias, stream, window) for alias in ("a", "b"))
    return BoundQuery(sources, (call("=", keys),), (Output("k", keys[0]),))
