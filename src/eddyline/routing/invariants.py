"""The routing constraints of paper 001 (its table 2), which are checked at every step with `check=True`, as in tests.

- BuildFirst: a row is built into the SteM of its source before it goes anywhere else. `check_packet`.
- SteM BounceBack: a SteM gives a row back that was built, unless it has this row already; and a tuple that probed,
  unless it has all rows that the tuple may match. Here a row that two access methods bring is left out before it is
  built (lookups/table.py), and a tuple that lacks rows asks for them; it need not be kept, because its rows are in
  SteMs.
- ProbeCompletion: a tuple that was given back goes to an access module of that table. `Asker.check`: whoever lacks rows
  has asked, or its lookup has failed.
- TimeStamp: a probe matches rows only that were built before the tuple started. `check_packet`, `check_matches`.
- LastMatchTimeStamp: a tuple that probes a SteM again does not match again what it matched before. Here none does: the
  row that comes as an answer starts a tuple of its own. `check_packet`: no tuple occurs twice.
- BoundedRepetition: no tuple takes a step again and again. Steps repeat nothing (plan/plan.py); `Asker.check`: a key
  that is answered is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from eddyline.errors import InternalError
from eddyline.plan.plan import Plan
from eddyline.routing.packet import Packet
from eddyline.state.column import RowNumbers
from eddyline.state.prober import Prober
from eddyline.state.probing import Limits


def check_packet(packet: Packet, probers: Sequence[Prober], plan: Plan, foreign: Collection[int] = ()) -> None:
    """Check a packet. BuildFirst: every component is a built row. TimeStamp: in each tuple exactly one component, the
    one that started the probing, was not yet built at the tuple's number; if a tuple of an intermediate SteM started
    it, there may be none. No tuple occurs twice. Another eddy made the tuples of `foreign` spans: whether and when
    their components were built is not known here."""
    span, operator = packet.signature[0], plan.operator(packet.signature)
    unknown = 0
    for of in foreign:
        unknown |= 0 if of & ~span else of
    starters = np.zeros(packet.size, np.int64)
    if packet.numbers.size not in (1, packet.size):
        raise InternalError("a packet does not have one number for each tuple")
    components = {source: rows for source, rows in packet.rows.items() if source >= 0}
    for source, rows in components.items():
        prober = probers[source]
        if rows.size != packet.size or rows.size == 0:
            raise InternalError("a packet is ragged or empty")
        known = not unknown >> source & 1
        if (known and rows.max() >= prober.built) or rows.min() < prober.min_live:
            raise InternalError(f"a packet has a row of source {source} that is not built or has expired")
        if known:
            starters += rows >= prober.rows_before(packet.numbers)
    sources = len(plan.query.sources)
    larger = unknown or any(n >= sources and of & span for n, of in zip(operator.stems, operator.spans, strict=True))
    wrong = (starters > 1) | (starters < (not larger))
    if wrong.any():
        raise InternalError(f"{starters[wrong][0]} components of a tuple started its probing")
    if packet.size == 1:
        return
    columns = list(components.values())
    order = np.lexsort(columns)
    same = np.ones(packet.size - 1, np.bool_)
    for rows in columns:
        ordered = rows[order]
        same &= ordered[1:] == ordered[:-1]
    if same.any():
        raise InternalError("a packet has a tuple twice")


def check_matches(target: int, tuples: RowNumbers, rows: RowNumbers, limits: Limits) -> None:
    """Check that a probe returned only live rows that were built before."""
    before = limits.before if limits.before.size == 1 else limits.before[tuples]
    if (rows < limits.min_live).any() or (rows >= before).any():
        raise InternalError(f"source {target} returned a row that is too new or has expired")
