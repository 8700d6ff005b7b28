"""A hash table from keys to values that can be taken out again, with open addressing.

`table` holds slots of two words, KEY and VALUE; a key's slot is its hash scaled to the number of slots. A slot whose
value is ABSENT is free. Invariant: between the slot of a key's hash and the slot where the key is there is no free
one, so a search ends at the first free slot. To keep it, the keys behind one that is taken out move back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.hash_index import next_slot, slot_of
from eddyline.kernels.jit import at, count, kernel

KEY, VALUE = 0, 1
ABSENT = np.iinfo(np.int64).min


@kernel
def add(table: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64], which: NDArray[np.int64]) -> int:
    """Put keys in, for which there is room, each with the least of its values, here and before. Writes the numbers of
    the keys that are new, each once; returns how many there are."""
    n = at(0)
    for i in range(at(keys.size)):
        key, value = keys[i], values[i]
        p = slot_of(key, table)
        while table[p, VALUE] != ABSENT and table[p, KEY] != key:
            p = next_slot(p, table)
        if table[p, VALUE] == ABSENT:
            table[p, KEY] = key
            table[p, VALUE] = value
            which[n] = i
            n += at(1)
        elif value < table[p, VALUE]:
            table[p, VALUE] = value
    return count(n)


@kernel
def find(table: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Write the value of each key, or ABSENT."""
    for i in range(at(keys.size)):
        p = slot_of(keys[i], table)
        while table[p, VALUE] != ABSENT and table[p, KEY] != keys[i]:
            p = next_slot(p, table)
        values[i] = table[p, VALUE]


@kernel
def take(table: NDArray[np.int64], keys: NDArray[np.int64], values: NDArray[np.int64]) -> int:
    """Take keys out. Writes the value of each one, or ABSENT if it is not there any more; returns how many were."""
    n, slots = 0, at(table.shape[0])
    for i in range(at(keys.size)):
        p = slot_of(keys[i], table)
        while table[p, VALUE] != ABSENT and table[p, KEY] != keys[i]:
            p = next_slot(p, table)
        values[i] = table[p, VALUE]
        if values[i] == ABSENT:
            continue
        n += 1
        q = p
        while True:
            q = next_slot(q, table)
            if table[q, VALUE] == ABSENT:
                break
            home = slot_of(table[q, KEY], table)
            far = q - home if q >= home else q + slots - home
            gap = q - p if q >= p else q + slots - p
            if far >= gap:  # from its own slot on, this key passed the free one
                table[p, KEY] = table[q, KEY]
                table[p, VALUE] = table[q, VALUE]
                p = q
        table[p, VALUE] = ABSENT
    return n
