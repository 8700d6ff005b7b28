"""Persons, auctions and bids as record batches. Columns that nobody wants are not made; they change no other column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eddyline.runtime.sources.nexmark import draws, texts
from eddyline.runtime.sources.nexmark.draws import FIRST_ID, Ints
from eddyline.runtime.sources.nexmark.settings import NexmarkSettings

_TIME, _TEXT, _NUMBER = pa.timestamp("us"), pa.string(), pa.int64()
SCHEMAS = {
    "person": pa.schema({
        "id": _NUMBER, "name": _TEXT, "emailAddress": _TEXT, "creditCard": _TEXT, "city": _TEXT, "state": _TEXT,
        "dateTime": _TIME, "extra": _TEXT,
    }),
    "auction": pa.schema({
        "id": _NUMBER, "itemName": _TEXT, "description": _TEXT, "initialBid": _NUMBER, "reserve": _NUMBER,
        "dateTime": _TIME, "expires": _TIME, "seller": _NUMBER, "category": _NUMBER, "extra": _TEXT,
    }),
    "bid": pa.schema({
        "auction": _NUMBER, "bidder": _NUMBER, "price": _NUMBER, "channel": _TEXT, "url": _TEXT, "dateTime": _TIME,
        "extra": _TEXT,
    }),
}  # fmt: skip
Makers = Mapping[str, Callable[[], pa.Array]]


def rows(settings: NexmarkSettings, first: int, last: int, wanted: Sequence[str]) -> pa.RecordBatch:
    """The rows of the settings' kind among the events first .. last - 1, with the wanted columns."""
    row, end = settings.rows(first), settings.rows(last)
    persons, auctions, bids = settings.proportions
    rules = np.array([
        settings.seed % (1 << 63), settings.rate, persons, auctions, bids, settings.hot_auction_ratio,
        settings.hot_sellers_ratio, settings.hot_bidders_ratio, settings.in_flight_auctions, settings.active_people,
    ])  # fmt: skip
    times = np.empty(end - row, np.int64)
    draws.times(row, settings.proportion, settings.before, rules, settings.start, times)
    make = {"person": _persons, "auction": _auctions, "bid": _bids}[settings.kind]
    makers = make(settings, row, rules, times)
    schema = SCHEMAS[settings.kind]
    arrays = [makers[name]() for name in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([schema.field(name) for name in wanted]))


def _bids(settings: NexmarkSettings, first: int, rules: Ints, times: Ints) -> Makers:
    auction, bidder, price, channel, extra = (np.empty(len(times), np.int64) for _ in range(5))
    draws.bids(first, rules, auction, bidder, price, channel, extra)
    return {
        "auction": lambda: pa.array(auction),
        "bidder": lambda: pa.array(bidder),
        "price": lambda: pa.array(price),
        "channel": lambda: texts.channels()[0].take(pa.array(channel)),
        "url": lambda: texts.channels()[1].take(pa.array(channel)),
        "dateTime": lambda: pa.array(times, _TIME),
        "extra": lambda: texts.extra(extra, np.array([4 * 8]), settings.bytes),
    }


def _auctions(settings: NexmarkSettings, first: int, rules: Ints, times: Ints) -> Makers:
    seller, category, initial, reserve, length = (np.empty(len(times), np.int64) for _ in range(5))
    drawn = np.empty((len(times), 3), np.int64)
    draws.auctions(first, rules, seller, category, initial, reserve, length, drawn)

    name, description = cache(lambda: texts.text(drawn[:, 0], 20)), cache(lambda: texts.text(drawn[:, 1], 100))

    def sizes() -> Ints:
        return 6 * 8 + _bytes(name()) + _bytes(description())

    return {
        "id": lambda: pa.array(np.arange(first, first + len(times)) + FIRST_ID),
        "itemName": name,
        "description": description,
        "initialBid": lambda: pa.array(initial),
        "reserve": lambda: pa.array(reserve),
        "dateTime": lambda: pa.array(times, _TIME),
        "expires": lambda: pa.array(times + length * 1000, _TIME),
        "seller": lambda: pa.array(seller),
        "category": lambda: pa.array(category),
        "extra": lambda: texts.extra(drawn[:, 2], sizes(), settings.bytes),
    }


def _persons(settings: NexmarkSettings, first: int, rules: Ints, times: Ints) -> Makers:
    drawn = np.empty((len(times), 6), np.int64)
    draws.persons(first, rules, drawn)

    def joined(one: pa.Array, other: pa.Array, between: str) -> pa.Array:
        return pc.binary_join_element_wise(one, other, between)

    makers: dict[str, Callable[[], pa.Array]] = {
        "name": lambda: joined(
            texts.words(drawn[:, 0], 0, texts.FIRST_NAMES), texts.words(drawn[:, 0], 1, texts.LAST_NAMES), " "
        ),
        "emailAddress": lambda: joined(
            joined(texts.text(drawn[:, 1], 7), texts.text(drawn[:, 2], 5), "@"), pa.scalar(".com"), ""
        ),
        "creditCard": lambda: texts.card(drawn[:, 3], drawn[:, 4]),
        "city": lambda: texts.words(drawn[:, 0], 2, texts.CITIES),
        "state": lambda: texts.words(drawn[:, 4], 2, texts.STATES),
    }
    makers = {name: cache(make) for name, make in makers.items()}

    def sizes() -> Ints:
        return sum((_bytes(make()) for make in makers.values()), np.full(len(times), 8))

    return {
        **makers,
        "id": lambda: pa.array(np.arange(first, first + len(times)) + FIRST_ID),
        "dateTime": lambda: pa.array(times, _TIME),
        "extra": lambda: texts.extra(drawn[:, 5], sizes(), settings.bytes),
    }


def _bytes(values: pa.Array) -> Ints:
    lengths: Ints = pc.binary_length(values).to_numpy().astype(np.int64)
    return lengths
