"""The texts of Nexmark's rows, cut out of pools of random letters or taken from lists of words."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eddyline.runtime.sources.nexmark.draws import CHANNELS, POOL, Ints, copied, cut, letters

_LONGEST = 1 << 16
_BLANK = ord(" ")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")


@cache
def _pool(one_of: int) -> NDArray[np.uint8]:
    pool = np.empty(POOL + _LONGEST, np.uint8)
    letters(7, _BLANK, one_of, pool)
    return pool


def below(numbers: Ints, part: int, bound: int) -> Ints:
    """Whole numbers from 0 to bound - 1 out of one of three parts (21 bits each) of random numbers; `bound` is at most
    2^20."""
    found: Ints = ((numbers >> (21 * part)) & 0x1FFFFF) * bound >> 21
    return found


def words(numbers: Ints, part: int, known: tuple[str, ...]) -> pa.Array:
    """One of the known words for each number."""
    return pa.array(known, pa.string()).take(pa.array(below(numbers, part, len(known))))


def text(numbers: Ints, most: int) -> pa.Array:
    """Texts of 3 to most - 1 letters, of which one of 13 is a blank, trimmed."""
    return _cut(numbers, 3 + below(numbers, 1, most - 3), 13)


def extra(numbers: Ints, sizes: Ints, average: int) -> pa.Array:
    """Letters that fill rows, which have `sizes` bytes so far (one number if all have the same), up to an average
    size."""
    room = average - sizes
    delta = np.floor(room * 0.2 + 0.5).astype(np.int64)
    lengths = room - delta + below(numbers, 1, 1 << 20) * (2 * np.maximum(delta, 0)) // (1 << 20)
    return _cut(numbers, np.where(room < 0, 0, np.minimum(lengths, _LONGEST)), 0)


def _cut(numbers: Ints, lengths: Ints, one_of: int) -> pa.Array:
    pool, starts = _pool(one_of), below(numbers, 0, POOL)
    offsets = np.empty(len(numbers) + 1, np.int32)
    cut(pool, _BLANK, starts, lengths, offsets)
    out = pa.allocate_buffer(int(offsets[-1]))
    copied(pool, starts, offsets, np.frombuffer(out, np.uint8))
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), out)


def card(numbers: Ints, more: Ints) -> pa.Array:
    """Numbers of credit cards: four groups of four digits."""
    groups = [below(numbers, 0, 10_000), below(numbers, 1, 10_000), below(more, 0, 10_000), below(more, 1, 10_000)]
    return pc.binary_join_element_wise(*(_FOUR_DIGITS.take(pa.array(group)) for group in groups), " ")


_FOUR_DIGITS = pa.array([f"{n:04}" for n in range(10_000)])


@cache
def channels() -> tuple[pa.Array, pa.Array]:
    """The names and the addresses of all channels, the hot ones first. Nine of ten of the others have their number,
    with its bits reversed, in the address."""
    random = np.random.default_rng(11)

    def part() -> str:
        codes = random.integers(0, 26, int(random.integers(3, 5)))
        return "".join("_" if random.integers(0, 13) == 0 else chr(97 + code) for code in codes)

    names, urls = list(HOT_CHANNELS), []
    for number in range(-len(HOT_CHANNELS), CHANNELS):
        url = f"https://www.nexmark.com/{part()}/{part()}/{part()}/item.htm?query=1"
        if number >= 0:
            names.append(f"channel-{number}")
            if random.integers(0, 10) > 0:
                reverse = int(f"{number:032b}"[::-1], 2)
                url += f"&channel_id={abs(reverse - (1 << 32) if reverse >> 31 else reverse)}"
        urls.append(url)
    return pa.array(names), pa.array(urls)
