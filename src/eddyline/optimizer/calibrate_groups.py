"""Measures what grouping tuples costs on this machine, with the code of operators that group.

Packets of two sizes are grouped: this separates the fixed cost of a packet from the cost of a tuple. The query is a
join with a group-by and one sum. More keys and aggregates cost more; the correction by the total CPU of a running query
has to make up for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np
import pyarrow as pa

from eddyline.bound.evaluate import ErrorCount
from eddyline.bound.expr import Aggregate, Expr, SourceColumn, columns_of
from eddyline.bound.functions import call
from eddyline.bound.model import BoundQuery, BoundSource, BoundStream, GroupBy, Output, Window, WindowKind
from eddyline.bound.slide import Slide
from eddyline.plan.plan import Plan
from eddyline.plan.tree import Tree
from eddyline.routing.packet import Packet, started
from eddyline.routing.weights import Weights
from eddyline.state.arena import Arena
from eddyline.state.stem import SteM

SMALL, LARGE, ROUNDS = 64, 8192, 3
_GROUPS = 32
_SECOND = 1_000_000


def calibrate_groups(clock: Callable[[], float]) -> Mapping[str, float]:
    """The costs `group_tuple` and `group_packet`, in seconds of the clock."""
    arena = Arena()
    try:
        plan = Plan(_query(), Tree((Tree((0,), grouped=True), 1)))
        stems = [SteM(arena, layout) for layout in plan.layouts]
        times = np.arange(LARGE)
        values = {e: pa.array(times % _GROUPS) for e in {*stems[0].layout.stored, *stems[0].layout.keys}}
        stems[0].rows.append(values, times, None)
        stems[0].build(0, LARGE)

        def gather(packet: Packet, exprs: Sequence[Expr]) -> dict[Expr, pa.Array]:
            return {c: stems[0].rows.gather(c, packet.rows[0]) for expr in exprs for c in columns_of(expr)}

        weights = Weights(plan, [stem.rows for stem in stems], gather, ErrorCount(), None)

        def seconds(rows: int) -> float:
            start = clock()
            weights.combined(2, started(0, 0, rows, 0))
            return clock() - start

        for rows in (SMALL, LARGE):  # compiles and imports before the measurement
            seconds(rows)
        small, large = (median(seconds(rows) for _ in range(ROUNDS)) for rows in (SMALL, LARGE))
    finally:
        arena.close()
    each = (large - small) / (LARGE - SMALL)
    return {"group_tuple": each, "group_packet": small - SMALL * each}


def _query() -> BoundQuery:
    schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
    stream = BoundStream("s", schema, "ts")
    window = Window(WindowKind.RANGE, _SECOND)
    keys = [SourceColumn(source, "k", pa.int64()) for source in (0, 1)]
    added = Aggregate("SUM", SourceColumn(0, "v", pa.int64()), False, pa.int64())
    group = GroupBy((SourceColumn(1, "v", pa.int64()),), (added,), None, Slide(_SECOND))
    sources = tuple(BoundSource(alias, stream, window) for alias in ("a", "b"))
    return BoundQuery(sources, (call("=", keys),), (Output("s", added),), group)
