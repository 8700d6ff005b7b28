"""Measures step costs on this machine, with the SteMs that the engine uses, in about a tenth of a second.

Each cost is the median of a few rounds, per row, tuple or match, over packets of `PACKET` rows. The cost of a single
step is the difference between two measurements that differ by that step. A first round compiles kernels and does not
count. The work around a SteM (queues, routing, gathering) is not measured here: a running query corrects the costs by
its total CPU (`StepCosts.times`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Expr, Literal, SourceColumn
from eddyline.bound.functions import call
from eddyline.optimizer.costs import StepCosts
from eddyline.routing.tuning import DEFAULT as ROUTING
from eddyline.state.arena import Arena
from eddyline.state.column import Column
from eddyline.state.layout import Layout
from eddyline.state.probing import NO_BOUND, Limits
from eddyline.state.stem import SteM

PACKET, PACKETS, ROUNDS = 1024, 8, 3
FAN_OUT = 4
"""Rows per key, and so matches per tuple."""
LEAST = 1e-11
"""The least cost of a step in seconds, where the clock shows no difference."""

_KEY: Expr = SourceColumn(0, "k", pa.int64())
_OTHER: Expr = SourceColumn(1, "k", pa.int64())
_CONDITION = call("<", [call("+", [_KEY, _OTHER]), Literal(0, pa.int64())])
"""A condition on a pair that no index serves and that never holds."""
_ROWS = PACKET * PACKETS
_KEY_BYTES = 8
"""Bytes of the key itself, which are counted with the row."""
_LISTED = 32
"""The number of tuples that probe the whole list; fewer than a packet, because the list is long."""


def calibrate(clock: Callable[[], float]) -> StepCosts:
    """Measure the costs. The clock returns seconds, best of this thread (`time.thread_time`)."""
    arena = Arena()
    try:
        _round(arena, clock)
        rounds = [_round(arena, clock) for _ in range(ROUNDS)]
        index_bytes = _index_bytes(arena)
    finally:
        arena.close()
    costs = {name: max(LEAST, median(measured[name] for measured in rounds)) for name in rounds[0]}
    return StepCosts(**costs, index_bytes=index_bytes)


def _round(arena: Arena, clock: Callable[[], float]) -> Mapping[str, float]:
    watch = _Watch(clock)
    stems = plain, hashed, ordered, stored = [_stem(arena, kind) for kind in ("plain", "hashed", "ordered", "stored")]
    for stem in stems:  # fill a window and expire it: afterwards its tables have their final size
        _fill(stem)
        _expire(stem)
    row = watch(lambda: _fill(plain)) / _ROWS
    in_hash = watch(lambda: _fill(hashed)) / _ROWS
    in_order = watch(lambda: _fill(ordered)) / _ROWS
    component = watch(lambda: _fill_column(Column(arena, "i8"))) / _ROWS
    rows = np.arange(_ROWS, _ROWS + PACKET)
    here, missing = hashed.rows.key_values((_KEY,)), np.full(2 * _ROWS, -1)
    miss = watch(lambda: _drain_hash(hashed, missing, rows)) / PACKET
    hit = watch(lambda: _drain_hash(hashed, here, rows)) / PACKET
    none = np.full(PACKET, 2 * _ROWS)
    between = watch(lambda: sum(t.size for t, _ in ordered.prober.probe_range(_KEY, none, none, _limits()))) / PACKET
    _fill(stored)
    listed = watch(lambda: _pairs(stored, rows[:_LISTED])) / (_LISTED * _ROWS)
    gone = watch(lambda: _expire(hashed)) / _ROWS
    return {
        "insert_row": row,
        "insert_index": in_hash - row,
        "insert_sorted": in_order - row,
        "insert_component": component,
        "delete_row": gone,
        "probe_hash": miss,
        "probe_range": between,
        "probe_list_row": listed,
        "match": (hit - miss) / FAN_OUT,
    }


class _Watch:
    """Measures the seconds that a piece of work takes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def __call__(self, work: Callable[[], object]) -> float:
        start = self._clock()
        work()
        return self._clock() - start


def _stem(arena: Arena, kind: str) -> SteM:
    keys = (_KEY,) if kind == "hashed" else ()
    order_keys = (_KEY,) if kind == "ordered" else ()
    stored = (_KEY,) if kind == "stored" else ()
    return SteM(arena, Layout(True, False, stored, keys, tuple((key,) for key in keys), order_keys))


def _index_bytes(arena: Arena) -> float:
    """Bytes of a row in a hash index in which every row has a key of its own: the upper bound."""
    stems = [_stem(arena, kind) for kind in ("plain", "hashed")]
    for stem in stems:
        _fill(stem, 1)
    return (stems[1].nbytes - stems[0].nbytes) / _ROWS - _KEY_BYTES


def _fill(stem: SteM, fan_out: int = FAN_OUT) -> None:
    """Append and build packets of rows in which each key occurs `fan_out` times, far apart."""
    for _ in range(PACKETS):
        times = np.arange(stem.built, stem.built + PACKET)
        stem.rows.append({_KEY: pa.array(times % (_ROWS // fan_out))}, times, None)
        stem.build(stem.built, PACKET)


def _fill_column(column: Column) -> None:
    values = np.arange(PACKET)
    for _ in range(PACKETS):
        column.append(values)


def _limits(room: int = FAN_OUT * PACKET) -> Limits:
    return Limits(NO_BOUND, NO_BOUND, np.array([2 * _ROWS]), _ROWS, room, np.zeros(1, np.int64))


def _pairs(stem: SteM, rows: NDArray[np.int64]) -> int:
    """Evaluate the condition for every pair of one of these rows and a live row; returns how many pairs match."""
    matches, errors = 0, ErrorCount()
    for tuples, found in stem.prober.probe_all(rows.size, _limits(ROUTING.largest_packet)):
        values = {_KEY: stem.rows.gather(_KEY, rows[tuples]), _OTHER: stem.rows.gather(_KEY, found)}
        matches += int(mask(_CONDITION, values, tuples.size, errors).sum())
    return matches


def _drain_hash(stem: SteM, keys: NDArray[np.int64], rows: NDArray[np.int64]) -> int:
    return sum(tuples.size for tuples, _ in stem.prober.probe_key((_KEY,), keys, rows, _limits()))


def _expire(stem: SteM) -> None:
    stem.expire(stem.built)
    stem.commit()
