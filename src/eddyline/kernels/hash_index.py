"""The chained hash index: key -> newest row, and from each row to the previous row of the same key.

`table` holds slots of two words, key and head, side by side so that a lookup costs one cache line; a key's slot is
its hash scaled to the number of slots (any number below 2**32), and open addressing goes to the next. A head is a row
number, NO_ROW for a key whose chain was popped empty, or EMPTY for a slot never used. Invariant: following `after`
from a head visits the rows of that key in falling order, so a probe may stop at the first row below `min_live`, and
popping the newest row of a key is `head = after[row]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import fetch, inlined, kernel

NO_ROW = -1
EMPTY = -2
_AHEAD = 16
"""So many rows before a key is inserted its slot is fetched."""
_TOGETHER = 64
"""Tuples that are looked up together, before their chains are followed: so the loads of one do not wait for those of
another."""


@inlined
def _slot(key: int, slots: int) -> int:
    x = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    low = (x ^ (x >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return np.int64((low * np.uint64(slots)) >> np.uint64(32))  # type: ignore[return-value]


@kernel
def build(table: NDArray[np.int64], after: NDArray[np.int64], keys: NDArray[np.int64], first: int, last: int) -> int:
    """Insert rows first..last-1, whose keys are keys[row]; returns how many keys were new to the table."""
    slots = table.size // 2
    new = 0
    for row in range(first, last):
        fetch(table, 2 * _slot(keys[min(row + _AHEAD, last - 1)], slots))
        key = keys[row]
        p = _slot(key, slots)
        while True:
            head = table[2 * p + 1]
            if head == EMPTY:
                table[2 * p] = key
                table[2 * p + 1] = row
                after[row] = NO_ROW
                new += 1
                break
            if table[2 * p] == key:
                after[row] = head
                table[2 * p + 1] = row
                break
            p = p + 1 if p + 1 < slots else 0
    return new


@kernel
def pop(table: NDArray[np.int64], after: NDArray[np.int64], keys: NDArray[np.int64], first: int, last: int) -> None:
    """Undo `build` of rows first..last-1, newest first. Lowering the row count alone would splice chains of keys."""
    slots = table.size // 2
    for row in range(last - 1, first - 1, -1):
        p = _slot(keys[row], slots)
        while table[2 * p] != keys[row] or table[2 * p + 1] == EMPTY:
            p = p + 1 if p + 1 < slots else 0
        table[2 * p + 1] = after[row]


@kernel
def live_keys(table: NDArray[np.int64], floor: int) -> int:
    """How many keys have a row at or above `floor`."""
    n = 0
    for p in range(table.size // 2):
        if table[2 * p + 1] >= floor and table[2 * p + 1] >= 0:
            n += 1
    return n


@kernel
def rehash(old: NDArray[np.int64], new: NDArray[np.int64], floor: int) -> int:
    """Make `new` hold the keys of `old` that have a row at or above `floor`; returns how many there are."""
    slots = new.size // 2
    for p in range(slots):
        new[2 * p + 1] = EMPTY
    n = 0
    for i in range(old.size // 2):
        head = old[2 * i + 1]
        if head >= floor and head >= 0:
            p = _slot(old[2 * i], slots)
            while new[2 * p + 1] != EMPTY:
                p = p + 1 if p + 1 < slots else 0
            new[2 * p] = old[2 * i]
            new[2 * p + 1] = head
            n += 1
    return n


@kernel
def probe(
    table: NDArray[np.int64],
    after: NDArray[np.int64],
    times: NDArray[np.int64],
    keys: NDArray[np.int64],
    rows: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    before: NDArray[np.int64],
    min_live: int,
    passed: NDArray[np.int64],
    at: int,
    chain: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Matches of the tuples at.. of a packet: min_live <= row < before[i], low[i] <= times[row] <= high[i].

    Tuple i has the key keys[rows[i]]; `low` and `high` are empty where time does not matter, `before` has one element
    if it is the same for all tuples. `passed[0]` counts the rows passed over because they were too new. Returns the
    number of matches and where to go on: (n, at, chain), finished when at == rows.size. `chain` is the row to look at
    next, EMPTY to begin with a lookup.
    """
    slots = table.size // 2
    timed = low.size > 0
    each = before.size > 1
    end = before[0]
    room = out_tuple.size
    n = too_new = 0
    heads = np.empty(_TOGETHER, np.int64)
    while at < rows.size:
        stop = min(at + _TOGETHER, rows.size)
        for i in range(at, stop):
            fetch(table, 2 * _slot(keys[rows[i]], slots))
        for i in range(at, stop):
            key = keys[rows[i]]
            p = _slot(key, slots)
            head = table[2 * p + 1]
            if table[2 * p] != key or head == EMPTY:  # rarely: so the loop over keys goes straight on
                while True:
                    head = table[2 * p + 1]
                    if head == EMPTY or table[2 * p] == key:
                        break
                    p = p + 1 if p + 1 < slots else 0
            heads[i - at] = head
        for i in range(at, stop):
            row = heads[i - at]
            if each:
                end = before[i]
            if chain != EMPTY:
                row = chain
                chain = EMPTY
            while row >= min_live:
                if row >= end or (timed and times[row] > high[i]):
                    too_new += 1
                elif not timed or times[row] >= low[i]:
                    if n == room:
                        passed[0] += too_new
                        return n, i, row
                    out_tuple[n] = i
                    out_row[n] = row
                    n += 1
                row = after[row]
        at = stop
    passed[0] += too_new
    return n, at, EMPTY
