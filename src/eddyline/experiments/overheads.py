"""The cost of routing where all orders are equal: figures 5, 6 and 7 of the study of overheads of eddies.

The queries are the paper's, over streams with the rows of its tables `tenk`. Every plan costs the same, so the extra
time of an eddy over a static plan is the price of adaptivity. A static plan is `router=fixed`; an eddy orders by rank,
as in the paper, and revises its decisions every `reroute_every` tuples. Both run with adaptive packets and per tuple.
Each eddy is compared with the static plan of the same packets, and with a static plan that has a whole micro-batch in a
packet, as a system that never adapts would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.benchmarks.streams import START, Streams
from eddyline.bound.bind import bind
from eddyline.bound.udf import registered, udf
from eddyline.cql.script import parse
from eddyline.experiments import Figure, Say
from eddyline.experiments.chart import Chart, Series
from eddyline.experiments.instant_lookups import InstantLookups
from eddyline.experiments.rounds import Replay, ratio, spread, take_turns
from eddyline.experiments.table import Table
from eddyline.settings import Settings

ROWS = 10_000
REROUTE_EVERY = (1, 10, 100, 1000)
DELAYS = (0, 10, 100)
WAYS = (3, 4, 5)
SHARES = (10, 100)
"""Figure 7: of how many rows one asks the indexes."""
MICRO_BATCH = 2000
"""Rows of each stream; a large packet has all of them."""
INPUT_BATCH = 1000
"""Rows that every side takes in at a time: the sides differ in routing, not in building."""

_QUICK_ROWS = 300
_PADDING = 25
"""Columns that no query names: with them a row has 240 bytes (the paper's have 244)."""
COLUMNS = ("query", "packet", "plan", "reroute_every", "seconds", "over_static", "over_large", "spread")
"""over_static: seconds over those of the static plan with the same `packet`; over_large: over those of the static plan
with large packets."""
LARGE, ADAPTIVE, SINGLE = "65536", "adaptive", "1"
_WORDS = {SINGLE: "tuples", ADAPTIVE: "packets"}
_PACKET: dict[str, int | None] = {LARGE: 65536, ADAPTIVE: None, SINGLE: 1}
Side = tuple[str, str, int | str]
"""Packet, plan, reroute_every."""


def figure_5(quick: bool, say: Say) -> Figure:
    """Three selections that every row passes."""
    _register()
    rows = _QUICK_ROWS if quick else ROWS
    data = {"tenk1": tenk(rows, 1)}
    table = Table(COLUMNS)
    filters = _job(data, "SELECT COUNT(*) AS n FROM tenk1 WHERE two < 2 AND four < 4 AND ten < 10")
    _compare(table, "Filters", {(LARGE, "static", "-"): (filters, _static(LARGE))}, quick, say)
    calls = {"No-Delay": "same({})"} | {f"Delay-{x}": f"delay({{}}, {x})" for x in DELAYS}
    for name, call in calls.items():
        where = " AND ".join(f"{call.format(column)} < {limit}" for column, limit in _LIMITS.items())
        job = _job(data, f"SELECT COUNT(*) AS n FROM tenk1 WHERE {where}")
        _compare(table, name, _sides(job), quick, say)
    return _figure(table, "Eddies with selections")


def figure_6(quick: bool, say: Say) -> Figure:
    """Star joins in which every row finds one partner in each other stream."""
    rows = _QUICK_ROWS if quick else ROWS
    table = Table(COLUMNS)
    for what, select in (("All", "*"), ("Count", "COUNT(*) AS n")):
        for ways in WAYS[:1] if quick else WAYS:
            data = {f"tenk{i}": tenk(rows, i) for i in range(1, ways + 1)}
            where = " AND ".join(f"tenk1.unique2 = {other}.unique2" for other in list(data)[1:])
            text = f"SELECT {select} FROM {', '.join(data)} WHERE {where}"
            hashed: dict[Side, tuple[Replay, Settings]] = {
                (LARGE, "hash join", "-"): (_job(data, text, tables=list(data)[1:]), _static(LARGE))
            }
            _compare(table, f"Select-{what}-{ways}", _sides(_job(data, text)) | hashed, quick, say)
    return _figure(table, "Eddies with symmetric hash joins")


def figure_7(quick: bool, say: Say) -> Figure:
    """Star joins of one stream with tables that are asked by an index."""
    rows = _QUICK_ROWS if quick else ROWS
    table = Table(COLUMNS)
    for ways in WAYS[:1] if quick else WAYS:
        data = {f"hundredk{i}": tenk(rows, i) for i in range(1, ways + 1)}
        for share in SHARES[:1] if quick else SHARES:
            _compare(table, f"{ways}-{share}", _sides(_asking(data, share)), quick, say)
    return _figure(table, "Eddies with index joins")


def _asking(data: Streams, share: int) -> Replay:
    """The paper's query: the first of these is a stream, and one row of `share` asks the others."""
    first, *others = data
    held = {name: batch if name == first else batch.drop_columns(["ts"]) for name, batch in data.items()}
    lines = []
    for name, batch in held.items():
        columns = ", ".join(f"{f.name} {'TIMESTAMP' if f.name == 'ts' else 'BIGINT'}" for f in batch.schema)
        kind, ending = ("STREAM", "TIMESTAMP BY ts") if name == first else ("TABLE", "INDEX ON (unique2)")
        lines.append(f"CREATE {kind} {name} ({columns}) USING memory {ending};")
    equal = (f"{first}.unique2 = {other}.unique2" for other in others)
    lines.append(f"SELECT * FROM {', '.join(held)} WHERE {' AND '.join([f'{first}.unique2 % {share} = 0', *equal])}")
    query = bind(parse("\n".join(lines)), lambda declaration: held[declaration.name].schema)
    tables = {name: held[name] for name in others}
    return Replay(query, {first: held[first]}, MICRO_BATCH, lambda: InstantLookups(tables, "unique2"))


_LIMITS = {"two": 2, "four": 4, "ten": 10}


def tenk(rows: int, number: int) -> pa.RecordBatch:
    """A table of the paper: `unique2` is a key, in an order of its own; two, four and ten take that many values."""
    random = np.random.default_rng(number)
    columns = {"unique2": random.permutation(rows)}
    columns |= {name: random.integers(0, limit, rows) for name, limit in _LIMITS.items()}
    columns |= {f"padding{i}": random.integers(0, rows, rows) for i in range(_PADDING)}
    return pa.record_batch({"ts": pa.array(np.arange(rows) + START, pa.timestamp("us")), **columns})


def _job(data: Streams, select: str, tables: list[str] | None = None) -> Replay:
    """The query over all rows, with some streams as static tables."""
    tables = tables or []
    held = {name: batch.drop_columns(["ts"]) if name in tables else batch for name, batch in data.items()}
    lines = []
    for name, batch in held.items():
        columns = ", ".join(f"{f.name} {'TIMESTAMP' if f.name == 'ts' else 'BIGINT'}" for f in batch.schema)
        kind, time = ("TABLE", "") if name in tables else ("STREAM", " TIMESTAMP BY ts")
        lines.append(f"CREATE {kind} {name} ({columns}) USING memory{time};")
    query = bind(parse("\n".join([*lines, select])), lambda declaration: held[declaration.name].schema)
    return Replay(query, held, MICRO_BATCH)


def _static(packet: str) -> Settings:
    return Settings(router="fixed", packet=_PACKET[packet], input_batch=INPUT_BATCH, plan="mjoin")


def _sides(job: Replay) -> dict[Side, tuple[Replay, Settings]]:
    sides: dict[Side, tuple[Replay, Settings]] = {(packet, "static", "-"): (job, _static(packet)) for packet in _PACKET}
    for packet in (ADAPTIVE, SINGLE):
        for every in REROUTE_EVERY:
            eddy = replace(_static(packet), router="rank", reroute_every=every)
            sides[packet, "eddy", every] = job, eddy
    return sides


def _compare(table: Table, query: str, sides: Mapping[Side, tuple[Replay, Settings]], quick: bool, say: Say) -> None:
    """Measure all sides of a query, and add a row for each. The per-tuple sides take a hundred times as long and have
    rounds of their own."""
    for job, settings in sides.values():
        job.first_rows().run(settings)
    seconds: dict[Side, list[float]] = {}
    for single in (False, True):
        group = {side: partial(job.turns, s) for side, (job, s) in sides.items() if (s.packet == 1) == single}
        seconds |= take_turns(group, quick)[0] if group else {}
    for (packet, plan, every), measured in seconds.items():
        same, large = seconds[packet, "static", "-"], seconds[LARGE, "static", "-"]
        over = ratio(measured, same), ratio(measured, large)
        table.add(query, packet, plan, every, median(measured), *over, spread(measured))
    say(f"{query}: done")


def _figure(table: Table, title: str) -> Figure:
    """A figure of the eddies over the static plan with the same packets, and of the plans that never adapt."""
    series = {
        f"E({every}) {_WORDS[packet]}": _points(table, "over_static", packet=packet, plan="eddy", reroute_every=every)
        for packet in (SINGLE, ADAPTIVE)
        for every in REROUTE_EVERY
    }
    beside: Series = {
        "static large, seconds": _points(table, "seconds", packet=LARGE, plan="static"),
        "static packets / large": _points(table, "over_large", packet=ADAPTIVE, plan="static"),
        "static tuples / large": _points(table, "over_large", packet=SINGLE, plan="static"),
        "hash join / large": _points(table, "over_large", plan="hash join"),
        "rounds apart": [
            (query, max(float(row["spread"]) for row in table.where(query=query)))
            for query in dict.fromkeys(str(row["query"]) for row in table.where())
        ],
    }
    chart = Chart(title, "query", "run time / static plan, same packets", series, bars=True, level=1.0)
    return Figure(table, chart, {label: points for label, points in beside.items() if points})


def _points(table: Table, y: str, **wanted: str | int) -> list[tuple[str | int, float]]:
    return [(str(row["query"]), float(row[y])) for row in table.where(**wanted)]


def _register() -> None:
    """Register the user functions of the queries, once."""
    if "delay" in registered():
        return

    @udf(returns="BIGINT")
    def same(value: NDArray[np.int64]) -> NDArray[np.int64]:
        return value

    @udf(returns="BIGINT")
    def delay(value: NDArray[np.int64], micros: NDArray[np.int64]) -> NDArray[np.int64]:
        pause = float(micros[0]) / 1e6
        for _ in range(len(value)):
            until = perf_counter() + pause
            while perf_counter() < until:
                pass
        return value
