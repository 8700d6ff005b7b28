"""The chained hash index: key -> newest row, and from each row to the previous row of the same key.

`table` holds slots of two words, KEY and HEAD, side by side so that a lookup costs one cache line; a key's slot is its
hash scaled to the number of slots (any number below 2**32), and open addressing goes to the next. A head is a row
number, NO_ROW for a key whose chain was popped empty, or EMPTY for a slot never used. Invariant: following `after`
from a head visits the rows of that key in falling order, so a probe may stop at the first row below `min_live`, and
popping the newest row of a key is `head = after[row]`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import at, count, fetch, inlined, kernel

KEY, HEAD = 0, 1
NO_ROW = -1
EMPTY = -2
_AHEAD = 16
"""A key's slot is prefetched this many rows before the key is inserted."""


@inlined
def slot_of(key: int, table: NDArray[np.int64]) -> np.uint64:
    """The slot at which the search for a key begins: its hash, scaled to the number of slots."""
    x = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    low = (x ^ (x >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return (low * np.uint64(table.shape[0])) >> np.uint64(32)


@inlined
def next_slot(p: np.uint64, table: NDArray[np.int64]) -> np.uint64:
    """The slot after this one; after the last comes the first."""
    return p + at(1) if p + at(1) < at(table.shape[0]) else at(0)


@inlined
def _fetch(table: NDArray[np.int64], key: int) -> None:
    fetch(table, at(2) * slot_of(key, table))


@kernel
def build(table: NDArray[np.int64], after: NDArray[np.int64], keys: NDArray[np.int64], first: int, last: int) -> int:
    """Insert rows first..last-1, whose keys are keys[row]; returns how many keys were new to the table."""
    new = 0
    for row in range(at(first), at(last)):
        _fetch(table, keys[min(row + at(_AHEAD), at(last - 1))])
        key = keys[row]
        p = slot_of(key, table)
        while True:
            head = table[p, HEAD]
            if head == EMPTY:
                table[p, KEY] = key
                table[p, HEAD] = row
                after[row] = NO_ROW
                new += 1
                break
            if table[p, KEY] == key:
                after[row] = head
                table[p, HEAD] = row
                break
            p = next_slot(p, table)
    return new


@kernel
def pop(table: NDArray[np.int64], after: NDArray[np.int64], keys: NDArray[np.int64], first: int, last: int) -> None:
    """Undo `build` of rows first..last-1, newest first. Lowering the row count alone would splice chains of keys."""
    for row in range(last - 1, first - 1, -1):
        p = slot_of(keys[row], table)
        while table[p, KEY] != keys[row] or table[p, HEAD] == EMPTY:
            p = next_slot(p, table)
        table[p, HEAD] = after[row]


@kernel
def thin(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    old: int,
    numbers: NDArray[np.int64],
    heads: NDArray[np.int64],
) -> None:
    """Write the chains of rows that are left: numbers[i] is the new number of row old + i, or NO_ROW if it is gone.
    heads[i] becomes the new number of the newest row that is left of the chain from row old + i on. A chain goes to
    lower numbers, so that is known of all rows after it in its chain."""
    for i in range(at(numbers.size)):
        earlier = before[at(old) + i]
        left = heads[at(earlier - old)] if earlier >= old else NO_ROW
        if numbers[i] >= 0:
            after[at(numbers[i])] = left
            left = numbers[i]
        heads[i] = left


@kernel
def renumber(table: NDArray[np.int64], old: int, heads: NDArray[np.int64]) -> int:
    """Let each key begin at heads[row - old] in place of `row`; returns how many keys have a row."""
    alive, last = 0, at(table.shape[0] - 1)
    for i in range(at(table.shape[0])):
        fetch(heads, at(table[min(i + at(_AHEAD), last), HEAD] - old))
        head = table[i, HEAD]
        if head >= old:
            table[i, HEAD] = heads[at(head - old)]
            alive += table[i, HEAD] >= 0
        elif head != EMPTY:
            table[i, HEAD] = NO_ROW
    return alive


@kernel
def living(table: NDArray[np.int64], floor: int, out: NDArray[np.int64]) -> int:
    """Copy the slots of the keys that have a row at or above `floor`; returns how many there are. `out` has room for
    one more than that: every slot is written, and only those count, so there is no branch to be guessed wrong."""
    n, least = at(0), max(floor, 0)
    for i in range(at(table.shape[0])):
        head = table[i, HEAD]
        out[n, KEY] = table[i, KEY]
        out[n, HEAD] = head
        n += at(head >= least)
    return count(n)


@kernel
def fill(table: NDArray[np.int64], slots: NDArray[np.int64]) -> None:
    """Make a table hold these slots of another, and nothing else. They come in the order of that one, which is nearly
    the order of this one: hashes are scaled."""
    for i in range(at(table.shape[0])):
        table[i, HEAD] = EMPTY
    for i in range(at(slots.shape[0])):
        p = slot_of(slots[i, KEY], table)
        while table[p, HEAD] != EMPTY:
            p = next_slot(p, table)
        table[p, KEY] = slots[i, KEY]
        table[p, HEAD] = slots[i, HEAD]


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
    newest: NDArray[np.int64],
    block: int,
    passed: NDArray[np.int64],
    waiting: NDArray[np.int64],
    first: int,
    chains: int,
    out_tuple: NDArray[np.int64],
    out_row: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Matches of the tuples first.. of a packet: min_live <= row < before[i], low[i] <= times[row] <= high[i].

    Tuple i has the key keys[rows[i]]; `low`, `high` and `before` have one element if it is the same for all tuples.
    `newest`, unless it is empty, has the newest time up to the end of each `block` of rows: a chain is left as soon as
    all its further rows are too old. `passed[0]` counts the rows that were skipped because they were too new. Returns
    the number of matches and where to continue: (n, first, chains), finished when first == rows.size.

    The chains of many tuples are followed side by side, one row of each at a time, without branches that depend on the
    data, so the memory loads of one chain do not wait for those of another. The first half of `waiting` has the tuples
    of the `chains` that are being followed, its second half the row that each chain looks at next.
    """
    together, room = waiting.size // 2, out_tuple.size
    tuples, looked_at = waiting[:together], waiting[together:]
    each_time, each_before = at(low.size > 1), at(before.size > 1)
    n, too_new, oldest = at(0), 0, min_live
    while first < rows.size:
        stop = min(first + together, rows.size)
        if newest.size:
            least = low[at(first) * each_time]
            for i in range(at(first) * each_time, at(stop) * each_time):
                least = min(least, low[i])
            oldest = max(min_live, block * _first_block(newest, min_live // block, least))
        if not chains:
            found = at(0)
            for i in range(at(first), at(stop)):
                _fetch(table, keys[at(rows[i])])
            for i in range(at(first), at(stop)):
                key = keys[at(rows[i])]
                p = slot_of(key, table)
                head = table[p, HEAD]
                if table[p, KEY] != key or head == EMPTY:  # rare, so the loop over keys is predicted well
                    while True:
                        head = table[p, HEAD]
                        if head == EMPTY or table[p, KEY] == key:
                            break
                        p = next_slot(p, table)
                tuples[found] = i
                looked_at[found] = head
                found += at(head >= oldest)
            chains = count(found)
        while chains:
            if count(n) == room:
                passed[0] += too_new
                return room, first, chains
            some, left = min(chains, room - count(n)), at(0)
            for c in range(at(some)):
                fetch(times, looked_at[c])
                fetch(after, looked_at[c])
            for c in range(at(some)):
                which, row = at(tuples[c]), looked_at[c]
                time = times[at(row)]
                is_new = (row >= before[which * each_before]) | (time > high[which * each_time])
                too_new += is_new
                out_tuple[n] = which
                out_row[n] = row
                n += at((not is_new) & (time >= low[which * each_time]))
                row = after[at(row)]
                tuples[left] = which
                looked_at[left] = row
                left += at(row >= oldest)
            for c in range(at(some), at(chains)):
                tuples[left] = tuples[c]
                looked_at[left] = looked_at[c]
                left += at(1)
            chains = count(left)
        first = stop
    passed[0] += too_new
    return count(n), first, 0


@kernel
def lacking(
    table: NDArray[np.int64], keys: NDArray[np.int64], rows: NDArray[np.int64], min_live: int, out: NDArray[np.int64]
) -> int:
    """Write the numbers of the tuples whose key, keys[rows[i]], has no row at or above `min_live`; returns how many
    there are. `out` has room for one more than all: every number is written, and only those count."""
    n, least, last = at(0), max(min_live, 0), at(rows.size - 1)
    for i in range(at(rows.size)):
        _fetch(table, keys[at(rows[min(i + at(_AHEAD), last)])])
        key = keys[at(rows[i])]
        p = slot_of(key, table)
        while table[p, HEAD] != EMPTY and table[p, KEY] != key:
            p = next_slot(p, table)
        out[n] = i
        n += at(table[p, HEAD] < least)
    return count(n)


@inlined
def _first_block(newest: NDArray[np.int64], first: int, time: int) -> int:
    """The first block, from `first` on, that has a row of this time or a newer one."""
    last = newest.size
    while first < last:
        middle = (first + last) // 2
        if newest[middle] < time:
            first = middle + 1
        else:
            last = middle
    return first
