"""Routing arrays without an engine, and packets and traffic that nobody measured."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from eddyline.bound.udf import udf
from eddyline.plan.plan import Plan, Signature
from eddyline.routing.packet import Packet
from eddyline.routing.routing_arrays import Entry, RoutingArrays, Traffic
from eddyline.routing.statistics import Work
from tests.support.jobs import bound

SELECT = (
    "SELECT a.x FROM a [RANGE 5 MICROSECONDS], b [RANGE 5 MICROSECONDS], c [RANGE 5 MICROSECONDS] "
    "WHERE made_up_small(a.x) AND made_up_small(b.x) AND made_up_small(a.k) AND a.k = b.k AND b.x = c.x"
)


def plan(select: str = SELECT) -> Plan:
    """The plan of a query over a, b and c."""

    @udf(returns=pa.bool_(), name="made_up_small")
    def small(x: np.ndarray) -> np.ndarray:
        return x < 1

    return Plan(bound(select, **dict.fromkeys([n for n in "abc" if f" {n} " in select], "k x")))


def routes(select: str = SELECT) -> RoutingArrays:
    """The routing arrays of a query over a, b and c, empty."""
    return RoutingArrays(plan(select))


def packet(signature: Signature, first: int, size: int, number: int = 0) -> Packet:
    """Tuples first, first + 1, ... of a signature."""
    rows = {s: np.arange(first, first + size) for s in range(8) if signature[0] >> s & 1}
    return Packet(rows, signature, np.array([number]), size)


def no_overhead(moment: int = 0) -> Work:
    """As if a call cost nothing by itself."""
    work = Work()
    work.fixed, work.moment = 0.0, moment
    return work


def saw(traffic: Traffic, tuples: int, produced: int, seconds: float, moment: int = 0) -> None:
    """Evidence for a step, in one call."""
    traffic.add(tuples, produced, seconds, no_overhead(moment))


def entry(*measured: tuple[int, int, float] | None) -> Entry:
    """An entry with a selection of `a` for each (tuples, produced, seconds), None if it was never taken."""
    calls = " AND ".join(f"made_up_small(a.x + {i})" for i in range(len(measured)))
    found = routes(f"SELECT a.x FROM a WHERE {calls}").entry((1, 0))
    assert len(found.steps) == len(measured)
    for traffic, seen in zip(found.steps, measured, strict=True):
        if seen is not None:
            saw(traffic, *seen)
    return found
