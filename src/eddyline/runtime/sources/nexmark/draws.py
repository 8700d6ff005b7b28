"""Compiled loops that make the numbers of Nexmark's persons, auctions and bids, and cut texts out of a pool.

Every random number is a function of the seed, the number of the event and the number of the draw, so any range of
events can be made alone. The rules are those of the published generators (Beam, and Nexmark for Flink); their
constants are below. Ids count from FIRST_ID. `rules` holds what NexmarkSettings has, in the order of RULES.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eddyline.kernels.jit import at, inlined, kernel

FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
LEAD = 10
"""So many ids may be chosen that do not exist yet: their rows come a little later."""
HOT_EVERY = 100
"""One id of so many is hot for a while."""
HOT_CHANNELS, CHANNELS, HOT_CHANNEL_RATIO = 4, 10_000, 2
POOL = 1 << 20
"""Letters in a pool of texts. More follow, so that a text may begin at each of them."""
RULES = ("seed", "rate", "persons", "auctions", "bids", "hot_auction", "hot_sellers", "hot_bidders", "in_flight",
         "active")  # fmt: skip

Ints = NDArray[np.int64]
_G = 0x9E3779B97F4A7C15
_MILLION = np.log(1e6)
"""`exp` takes a third of the time of a power of ten."""


@inlined
def _mixed(x: np.uint64) -> np.uint64:
    """The finisher of SplitMix64: every bit of x changes about half of the bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def _state(seed: int, event: int) -> np.uint64:
    return _mixed(np.uint64(event) * np.uint64(_G) + _mixed(np.uint64(seed) + np.uint64(_G)))


@inlined
def _draw(state: np.uint64, number: int) -> np.uint64:
    return _mixed(state + np.uint64(number + 1) * np.uint64(_G))


@inlined
def _below(state: np.uint64, number: int, bound: int) -> int:
    """A whole number from 0 to bound - 1; `bound` is less than 2^32."""
    return np.int64(((_draw(state, number) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))  # type: ignore[return-value]


@inlined
def _price(state: np.uint64, number: int) -> int:
    """A price in cents between 1 and a million, whose logarithm is uniform."""
    fraction = np.float64(_draw(state, number) >> np.uint64(11)) * 2.0**-53
    return np.int64(np.floor(np.exp(fraction * _MILLION) * 100.0 + 0.5))  # type: ignore[return-value]


@inlined
def _some_person(state: np.uint64, number: int, last: int, rules: Ints) -> int:
    """One of the persons that are active, or that come soon."""
    active: int = min(last + 1, rules[9])
    return last + 1 - active + _below(state, number, active + LEAD)


@kernel
def times(first: int, proportion: int, before: int, rules: Ints, start: int, out: Ints) -> None:
    """The event times of rows of a kind from `first` on, in microseconds; as published they are whole milliseconds."""
    epoch, rate = rules[2] + rules[3] + rules[4], np.uint64(rules[1])
    event, of = first // proportion * epoch + before + first % proportion, first % proportion
    for i in range(out.size):
        out[i] = start + np.int64(np.uint64(event * 1000) // rate) * 1000
        event, of = event + 1, of + 1
        if of == proportion:
            event, of = event + epoch - proportion, 0


@kernel
def bids(first: int, rules: Ints, auction: Ints, bidder: Ints, price: Ints, channel: Ints, extra: Ints) -> None:
    """The numbers of bids. Channels 0 to 3 are the hot ones; `extra` is the random number from which the text is
    cut."""
    persons, auctions, bids = rules[2], rules[3], rules[4]
    epoch, of = first // bids, first % bids
    for i in range(auction.size):
        state = _state(rules[0], epoch * (persons + auctions + bids) + persons + auctions + of)
        last, person = (epoch + 1) * auctions - 1, (epoch + 1) * persons - 1
        if _below(state, 0, rules[5]) > 0:
            auction[i] = last // HOT_EVERY * HOT_EVERY + FIRST_ID
        else:
            least = max(last - rules[8], 0)
            auction[i] = least + _below(state, 1, last - least + 1 + LEAD) + FIRST_ID
        if _below(state, 2, rules[7]) > 0:
            bidder[i] = person // HOT_EVERY * HOT_EVERY + 1 + FIRST_ID
        else:
            bidder[i] = _some_person(state, 3, person, rules) + FIRST_ID
        price[i] = _price(state, 4)
        if _below(state, 5, HOT_CHANNEL_RATIO) > 0:
            channel[i] = _below(state, 6, HOT_CHANNELS)
        else:
            channel[i] = HOT_CHANNELS + _below(state, 6, CHANNELS)
        extra[i] = np.int64(_draw(state, 7) >> np.uint64(1))
        of += 1
        if of == bids:
            epoch, of = epoch + 1, 0


@kernel
def auctions(
    first: int, rules: Ints, seller: Ints, category: Ints, initial: Ints, reserve: Ints, length: Ints, texts: Ints
) -> None:
    """The numbers of auctions. `length` is how long an auction is open, in milliseconds; the columns of `texts` are
    random numbers from which the texts are cut."""
    persons, auctions = rules[2], rules[3]
    size = persons + auctions + rules[4]
    ahead = rules[8] * size // auctions
    for i in range(seller.size):
        epoch, of = (first + i) // auctions, (first + i) % auctions
        event = epoch * size + persons + of
        state = _state(rules[0], event)
        person = (epoch + 1) * persons - 1
        if _below(state, 0, rules[6]) > 0:
            seller[i] = person // HOT_EVERY * HOT_EVERY + FIRST_ID
        else:
            seller[i] = _some_person(state, 1, person, rules) + FIRST_ID
        category[i] = FIRST_CATEGORY + _below(state, 2, CATEGORIES)
        initial[i] = _price(state, 3)
        reserve[i] = initial[i] + _price(state, 4)
        horizon = (event + ahead) * 1000 // rules[1] - event * 1000 // rules[1]
        length[i] = 1 + _below(state, 5, max(2 * horizon, 1))
        for k in range(texts.shape[1]):
            texts[i, k] = np.int64(_draw(state, 6 + k) >> np.uint64(1))


@kernel
def persons(first: int, rules: Ints, texts: Ints) -> None:
    """The random numbers from which the texts of persons are made."""
    of = rules[2]
    size = of + rules[3] + rules[4]
    for i in range(texts.shape[0]):
        state = _state(rules[0], (first + i) // of * size + (first + i) % of)
        for k in range(texts.shape[1]):
            texts[i, k] = np.int64(_draw(state, k) >> np.uint64(1))


@kernel
def letters(seed: int, blank: int, one_of: int, out: NDArray[np.uint8]) -> None:
    """Small letters; one of `one_of` characters is `blank` instead (0: none)."""
    for i in range(out.size):
        state = _state(seed, i)
        out[i] = 97 + _below(state, 0, 26)
        if one_of > 0 and _below(state, 1, one_of) == 0:
            out[i] = blank


@kernel
def cut(pool: NDArray[np.uint8], blank: int, starts: Ints, lengths: Ints, offsets: NDArray[np.int32]) -> None:
    """Trim texts of the pool at `starts` (blanks at their ends go), and say where they begin in a text of all."""
    end = 0
    offsets[0] = 0
    for i in range(starts.size):
        start, length = starts[i], lengths[i]
        while length > 0 and pool[at(start)] == blank:
            start, length = start + 1, length - 1
        while length > 0 and pool[at(start + length - 1)] == blank:
            length -= 1
        starts[i], lengths[i] = start, length
        end += length
        offsets[i + 1] = end


@kernel
def copied(pool: NDArray[np.uint8], starts: Ints, offsets: NDArray[np.int32], out: NDArray[np.uint8]) -> None:
    """Copy texts out of the pool."""
    for i in range(starts.size):
        begin, start = at(offsets[i]), at(starts[i])
        for q in range(at(offsets[i + 1] - offsets[i])):
            out[begin + q] = pool[start + q]
