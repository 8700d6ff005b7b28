"""The queries of `bench peers`, each described once; sql.py writes it for every peer.

Every query is an inner join of streams within one window: all rows of a result lie at most `window` seconds apart.
Where an original is unbounded (Nexmark's queries 3 and 20, TPC-H) or tumbling (query 8), this window takes its place,
so that all sides keep bounded state and give the same rows. Event times are whole milliseconds, because Flink and
Pathway get them as numbers from text files. The column `t` has them too, for conditions between two streams.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from lab.peers import data

Tables = Mapping[str, pa.RecordBatch]


@dataclass(frozen=True)
class PeerJoin:
    """The join of a stream to one of the streams before it: stream.key = partner.partner_key."""

    stream: str
    key: str
    partner: str
    partner_key: str


@dataclass(frozen=True)
class PeerQuery:
    """One query. `filters` are conditions on the columns of one stream; in `conditions` on several streams a column is
    written {stream.column}. `outputs` are the columns of the result. `make` makes about so many rows in all."""

    name: str
    first: str
    joins: tuple[PeerJoin, ...]
    window: int
    outputs: tuple[tuple[str, str], ...]
    make: Callable[[int], Tables]
    filters: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams, in the order of joining."""
        return self.first, *(join.stream for join in self.joins)


def _chain(*joins: str) -> tuple[PeerJoin, ...]:
    """Joins written `stream.key = partner.key`.

    >>> _chain("b.x = a.y")
    (PeerJoin(stream='b', key='x', partner='a', partner_key='y'),)
    """
    sides = [tuple(side.strip().split(".") for side in join.split("=")) for join in joins]
    return tuple(PeerJoin(*new, *old) for new, old in sides)


def _outputs(*columns: str) -> tuple[tuple[str, str], ...]:
    return tuple((column.split(".")[0], column.split(".")[1]) for column in columns)


_TEN = tuple("abcdefghij")
_TIMELY = ("{bid.t} >= {auction.t}", "{bid.t} <= {auction.expires}")

QUERIES = {
    query.name: query
    for query in (
        PeerQuery(
            "three-way",
            "a",
            _chain("b.x = a.x", "c.y = b.y"),
            5,
            _outputs("a.v", "b.v", "c.v"),
            lambda rows: data.uniform({"a": ("x",), "b": ("x", "y"), "c": ("y",)}, rows, 100_000),
        ),
        PeerQuery(
            "star",
            "a",
            _chain("b.x = a.x", "c.y = a.y"),
            5,
            _outputs("a.v", "b.v", "c.v"),
            lambda rows: data.uniform({"a": ("x", "y"), "b": ("x",), "c": ("y",)}, rows, 100_000),
        ),
        PeerQuery(
            "one-key",
            "a",
            _chain("b.x = a.x", "c.x = a.x", "d.x = a.x"),
            5,
            _outputs("a.v", "b.v", "c.v", "d.v"),
            lambda rows: data.uniform(dict.fromkeys("abcd", ("x",)), rows, 100_000),
        ),
        PeerQuery(
            "ten-way",
            "a",
            _chain(*(f"{b}.{b} = {a}.{b}" for a, b in pairwise(_TEN))),
            5,
            _outputs(*(f"{s}.v" for s in _TEN)),
            lambda rows: data.uniform(
                {s: tuple(k for k in (s, _TEN[n + 1 : n + 2]) for k in k if k != "a") for n, s in enumerate(_TEN)},
                rows,
                50_000,
            ),
        ),
        PeerQuery(
            "drift",
            "a",
            _chain("b.x = a.x", "c.y = a.y", "d.z = a.z"),
            5,
            _outputs("a.v", "b.v", "c.v", "d.v"),
            data.drifting,
        ),
        PeerQuery(
            "nexmark-q3",
            "auction",
            _chain("person.id = auction.seller"),
            10,
            _outputs("person.name", "person.city", "person.state", "auction.id"),
            lambda rows: data.nexmark(
                {"auction": ("id", "seller", "category"), "person": ("id", "name", "city", "state")}, rows
            ),
            filters=(("auction", "category = 10"), ("person", "state IN ('OR', 'ID', 'CA')")),
        ),
        PeerQuery(
            "nexmark-q8",
            "person",
            _chain("auction.seller = person.id"),
            10,
            _outputs("person.id", "person.name", "auction.reserve"),
            lambda rows: data.nexmark({"person": ("id", "name"), "auction": ("id", "seller", "reserve")}, rows),
        ),
        PeerQuery(
            "nexmark-q20",
            "bid",
            _chain("auction.id = bid.auction"),
            10,
            _outputs("bid.bidder", "bid.price", "bid.channel", "auction.id", "auction.itemName", "auction.seller"),
            lambda rows: data.nexmark(
                {
                    "bid": ("auction", "bidder", "price", "channel"),
                    "auction": ("id", "itemName", "seller", "category"),
                },
                rows,
            ),
            filters=(("auction", "category = 10"),),
        ),
        PeerQuery(
            "nexmark-q4",
            "bid",
            _chain("auction.id = bid.auction"),
            10,
            _outputs("auction.id", "auction.category", "bid.price"),
            lambda rows: data.nexmark(
                {"bid": ("auction", "price", "t"), "auction": ("id", "category", "t", "expires")}, rows
            ),
            conditions=_TIMELY,
        ),
        PeerQuery(
            "nexmark-q9",
            "bid",
            _chain("auction.id = bid.auction"),
            10,
            _outputs(
                "auction.id", "auction.itemName", "auction.initialBid", "auction.seller", "bid.bidder", "bid.price"
            ),
            lambda rows: data.nexmark(
                {
                    "bid": ("auction", "bidder", "price", "t"),
                    "auction": ("id", "itemName", "initialBid", "seller", "t", "expires"),
                },
                rows,
            ),
            conditions=_TIMELY,
        ),
        PeerQuery(
            "tpch-q3",
            "lineitem",
            _chain("orders.orderkey = lineitem.orderkey", "customer.custkey = orders.custkey"),
            10,
            _outputs("orders.orderkey", "lineitem.v", "customer.v"),
            data.tpch("lineitem", "orders", "customer"),
            filters=(("customer", "segment = 1"),),
        ),
        PeerQuery(
            "tpch-q5",
            "lineitem",
            _chain(
                "orders.orderkey = lineitem.orderkey",
                "supplier.suppkey = lineitem.suppkey",
                "customer.custkey = orders.custkey",
            ),
            10,
            _outputs("lineitem.v", "orders.v", "customer.v", "supplier.v"),
            data.tpch("lineitem", "orders", "supplier", "customer"),
            conditions=("{customer.nation} = {supplier.nation}",),
        ),
        PeerQuery(
            "tpch-q9",
            "lineitem",
            _chain(
                "part.partkey = lineitem.partkey",
                "supplier.suppkey = lineitem.suppkey",
                "orders.orderkey = lineitem.orderkey",
            ),
            10,
            _outputs("lineitem.v", "orders.v", "part.v", "supplier.v"),
            data.tpch("lineitem", "part", "supplier", "orders"),
            filters=(("part", "type < 10"),),
        ),
    )
}
