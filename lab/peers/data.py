"""The rows of the queries of `bench peers`, a function of the number of rows alone.

Streams have a time `ts` in whole milliseconds and numbers; `v` numbers the rows of a stream. TPC-H is a stream of
orders whose lineitems follow within two seconds; rows of customer, part and supplier come again and again, as their
rows in a database change. The keys have TPC-H's structure: 1 to 7 lineitems for an order, ten orders for a customer,
twenty parts for a supplier, four suppliers for a part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.cql.declaration import Declaration
from eddyline.cql.places import Place
from eddyline.runtime.formats import open_source
from eddyline.runtime.sources.nexmark.settings import KINDS
from eddyline.runtime.sources.source import Wanted

START = 1_767_225_600_000
RATE = 10_000
"""Rows of each stream in a second of event time; events of all kinds for Nexmark."""
_PROPORTIONS = dict(zip(KINDS, (1, 3, 46), strict=True))
Rows = dict[str, pa.RecordBatch]


def _batch(times: np.ndarray[tuple[int], np.dtype[np.int64]], columns: Mapping[str, object]) -> pa.RecordBatch:
    """Rows with these times in milliseconds from the start."""
    ts = pa.array((times + START) * 1000, pa.timestamp("us"))
    return pa.record_batch({"ts": ts, **columns, "v": np.arange(len(times))})


def _even(rows: int, rate: float = RATE) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (np.arange(rows) * (1000 / rate)).astype(np.int64)


def uniform(columns: Mapping[str, Sequence[str]], rows: int, domain: int) -> Rows:
    """Streams with keys that are drawn uniformly from a domain, which is smaller if there are few rows."""
    random, each = np.random.default_rng(42), rows // len(columns)
    domain = min(domain, each)
    times = _even(each)
    return {name: _batch(times, {k: random.integers(0, domain, each) for k in keys}) for name, keys in columns.items()}


def drifting(rows: int) -> Rows:
    """A hub and three streams. In each third of the time another of the three has only one of a hundred keys of the
    hub, so another order of joining is best."""
    random, each = np.random.default_rng(43), rows // 4
    domain = min(50_000, each)
    times = _even(each)
    third = np.arange(each) * 3 // each
    made = {"a": _batch(times, {k: random.integers(0, domain, each) for k in "xyz"})}
    for number, (name, key) in enumerate(zip("bcd", "xyz", strict=True)):
        keys = random.integers(0, domain, each)
        made[name] = _batch(times, {key: np.where((third == number) & (random.random(each) < 0.99), -1 - keys, keys)})
    return made


def nexmark(columns: Mapping[str, Sequence[str]], rows: int) -> Rows:
    """Kinds of Nexmark's events with some of their columns; `t` and `expires` are milliseconds."""
    events = rows * sum(_PROPORTIONS.values()) // sum(_PROPORTIONS[kind] for kind in columns)
    made = {}
    for kind, names in columns.items():
        options = {"kind": kind, "events": str(events), "rate": str(RATE)}
        declared = Declaration("STREAM", kind, None, "nexmark", options, "dateTime", 0, None, None, Place(1, 1))
        source = open_source(declared, 0)
        read = ("dateTime", *(name for name in names if name != "t"))
        table = pa.Table.from_batches([chunk.rows for chunk in source.read(Wanted(read, read))]).combine_chunks()
        batch = table.to_batches()[0]

        def column(name: str, batch: pa.RecordBatch = batch) -> pa.Array:
            if name not in ("t", "expires"):
                return batch.column(name)
            micros = batch.column("dateTime" if name == "t" else name).cast(pa.int64()).to_numpy()
            return pa.array(micros // 1000)

        made[kind] = pa.record_batch({"ts": batch.column("dateTime"), **{name: column(name) for name in names}})
    return made


def tpch(*tables: str) -> Callable[[int], Rows]:
    """A function that makes these tables of TPC-H as streams."""

    def make(rows: int) -> Rows:
        random = np.random.default_rng(44)
        orders = rows // (5 + sum(name in tables for name in ("customer", "part", "supplier")))
        customers, suppliers = max(orders // 10, 1), max(orders // 150, 1)
        parts = suppliers * 20
        at = _even(orders, RATE / 4)
        of_order = np.repeat(np.arange(orders), random.integers(1, 8, orders))
        later = at[of_order] + random.integers(0, 2000, len(of_order))
        of_order, later = of_order[np.argsort(later, kind="stable")], np.sort(later)
        part = random.integers(0, parts, len(of_order))
        supplier = (part + random.integers(0, 4, len(part)) * (suppliers // 4 + 1)) % suppliers
        again = _even(orders, RATE / 4)
        made = {
            "orders": _batch(at, {"orderkey": np.arange(orders), "custkey": random.integers(0, customers, orders)}),
            "lineitem": _batch(later, {"orderkey": of_order, "partkey": part, "suppkey": supplier}),
            "customer": _batch(again, _again(random, "custkey", customers, orders, segment=5, nation=25)),
            "supplier": _batch(again, _again(random, "suppkey", suppliers, orders, nation=25)),
            "part": _batch(again, _again(random, "partkey", parts, orders, type=150)),
        }
        return {name: made[name] for name in tables}

    return make


def _again(
    random: np.random.Generator, key: str, keys: int, rows: int, **attributes: int
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Rows of a table that come again; each key always has the same attributes."""
    drawn = random.integers(0, keys, rows)
    return {key: drawn, **{name: (drawn * 7919 + 13) % size for name, size in attributes.items()}}
