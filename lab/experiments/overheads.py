"""The cost of routing where all orders are equal: figures 5, 6 and 7 of the study of overheads of eddies.

The queries are the paper's, over streams with the rows of its tables `tenk`. Every plan costs the same, so the extra
time of an eddy over a static plan is the price of adaptivity. A static plan is `router=fixed`; an eddy orders by rank,
as in the paper, and revises its decisions every `reroute_every` tuples. The paper's own baselines are beside them: its
base system evaluates predicates in the scan (figure 5) and joins by hash tables that are built first (figure 6), and
there is a static tree of symmetric hash joins. All of them run with adaptive packets and per tuple, and each is
compared with the others of the same packets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from statistics import median
from time import thread_time

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.bind import bind
from eddyline.bound.udf import registered, udf
from eddyline.cql.script import parse
from eddyline.settings import Settings
from lab.bench.streams import START, Streams
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.instant_lookups import InstantLookups
from lab.experiments.rounds import Replay, ratio, spread, take_turns
from lab.experiments.scanned import ScannedPredicates
from lab.experiments.table import Table

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
COLUMNS = ("query", "packet", "plan", "reroute_every", "seconds", "over_base", "over_static", "over_large", "spread")
"""over_base, over_static: seconds over those of the base system, and of the static plan, with the same `packet`;
over_large: over those of the static plan with large packets."""
LARGE, ADAPTIVE, SINGLE = "65536", "adaptive", "1"
_WORDS = {SINGLE: "tuples", ADAPTIVE: "packets"}
_PACKET: dict[str, int | None] = {LARGE: 65536, ADAPTIVE: None, SINGLE: 1}
Side = tuple[str, str, int | str]
"""Packet, plan, reroute_every."""
Points = list[tuple[str | int, float]]
Sides = dict[Side, tuple[Replay, Settings]]
SCAN, HASH_JOIN, TREE, STATIC, EDDY = "scan", "hash join", "SHJ tree", "static", "eddy"
"""The plans: three of the paper's static ones; the fixed order of modules; the eddy."""


def figure_5(quick: bool, say: Say) -> Figure:
    """Three selections that every row passes. The base system evaluates them in the scan; `No-Delay` without a call, as
    the paper writes it."""
    _register()
    data = {"tenk1": tenk(_QUICK_ROWS if quick else ROWS, 1)}
    table = Table(COLUMNS)
    calls = {"No-Delay": "same({})"} | {f"Delay-{x}": f"delay({{}}, {x})" for x in DELAYS}
    for name, call in calls.items():
        scanned = _counted(data, "{}" if name == "No-Delay" else call)
        base: Sides = {(ADAPTIVE, SCAN, "-"): (_in_the_scan(scanned, MICRO_BATCH), _static(ADAPTIVE))}
        base[SINGLE, SCAN, "-"] = _in_the_scan(scanned, 1), _static(SINGLE)
        _compare(table, name, base | _sides(_counted(data, call)), SCAN, quick, say)
    return _figure(table, "Eddies with selections", SCAN)


def _counted(data: Streams, call: str) -> Replay:
    where = " AND ".join(f"{call.format(column)} < {limit}" for column, limit in _LIMITS.items())
    return _job(data, f"SELECT COUNT(*) AS n FROM tenk1 WHERE {where}")


def _in_the_scan(job: Replay, at_a_time: int) -> Replay:
    """The same query, its predicates in the scan."""
    scan = ScannedPredicates(job.query.predicates, at_a_time)
    return Replay(replace(job.query, predicates=()), job.data, MICRO_BATCH, scan=scan)


def figure_6(quick: bool, say: Say) -> Figure:
    """Star joins in which every row finds one partner in each other stream. The base system has all streams but the
    first as tables, which are built first."""
    rows = _QUICK_ROWS if quick else ROWS
    table = Table(COLUMNS)
    for what, select in (("All", "*"), ("Count", "COUNT(*) AS n")):
        for ways in WAYS[:1] if quick else WAYS:
            data = {f"tenk{i}": tenk(rows, i) for i in range(1, ways + 1)}
            first, *others = data
            where = " AND ".join(f"{first}.unique2 = {other}.unique2" for other in others)
            text = f"SELECT {select} FROM {', '.join(data)} WHERE {where}"
            job, hashed = _job(data, text), _job(data, text, tables=others)
            tree = reduce(lambda left, right: f"({left} {right})", data)
            base: Sides = {(packet, HASH_JOIN, "-"): (hashed, _static(packet)) for packet in _WORDS}
            base |= {(packet, TREE, "-"): (job, replace(_static(packet), plan=tree)) for packet in _WORDS}
            _compare(table, f"Select-{what}-{ways}", base | _sides(job), HASH_JOIN, quick, say)
    return _figure(table, "Eddies with symmetric hash joins", HASH_JOIN, TREE)


def figure_7(quick: bool, say: Say) -> Figure:
    """Star joins of one stream with tables that are asked by an index."""
    rows = _QUICK_ROWS if quick else ROWS
    table = Table(COLUMNS)
    for ways in WAYS[:1] if quick else WAYS:
        data = {f"hundredk{i}": tenk(rows, i) for i in range(1, ways + 1)}
        for share in SHARES[:1] if quick else SHARES:
            _compare(table, f"{ways}-{share}", _sides(_asking(data, share)), STATIC, quick, say)
    return _figure(table, "Eddies with index joins", STATIC)


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


def _sides(job: Replay) -> Sides:
    sides: Sides = {(packet, STATIC, "-"): (job, _static(packet)) for packet in _PACKET}
    for packet in _WORDS:
        for every in REROUTE_EVERY:
            sides[packet, EDDY, every] = job, replace(_static(packet), router="rank", reroute_every=every)
    return sides


def _compare(table: Table, query: str, sides: Sides, base: str, quick: bool, say: Say) -> None:
    """Measure all sides of a query, and add a row for each. The per-tuple sides take a hundred times as long and have
    rounds of their own. `base` is the plan of the base system; it has no large packets."""
    for job, settings in sides.values():
        job.first_rows().run(settings)
    seconds: dict[Side, list[float]] = {}
    for single in (False, True):
        group = {side: partial(job.turns, s) for side, (job, s) in sides.items() if (s.packet == 1) == single}
        seconds |= take_turns(group, quick)[0]
    for (packet, plan, every), measured in seconds.items():
        beside = seconds.get((packet, base, "-"), seconds[ADAPTIVE, base, "-"])
        same, large = seconds[packet, STATIC, "-"], seconds[LARGE, STATIC, "-"]
        over = ratio(measured, beside), ratio(measured, same), ratio(measured, large)
        table.add(query, packet, plan, every, median(measured), *over, spread(measured))
    say(f"{query}: done")


def _figure(table: Table, title: str, base: str, *others: str) -> Figure:
    """A figure of the eddies, the static plan and other plans over the base system with the same packets."""
    series: dict[str, Points] = {}
    for packet, word in _WORDS.items():
        for every in REROUTE_EVERY:
            label = f"E({every}) {word}"
            series[label] = _points(table, "over_base", packet=packet, plan=EDDY, reroute_every=every)
        for plan in (STATIC, *others):
            if plan != base:
                series[f"{plan} {word}"] = _points(table, "over_base", packet=packet, plan=plan)
    beside: dict[str, Points] = {}
    if base != STATIC:
        for every in REROUTE_EVERY[:2]:
            label = f"E({every}) / static, tuples"
            beside[label] = _points(table, "over_static", packet=SINGLE, plan=EDDY, reroute_every=every)
    beside |= {
        f"{base} tuples, seconds": _points(table, "seconds", packet=SINGLE, plan=base),
        f"{base} packets, seconds": _points(table, "seconds", packet=ADAPTIVE, plan=base),
        "static large, seconds": _points(table, "seconds", packet=LARGE, plan=STATIC),
        "rounds apart": [
            (query, max(float(row["spread"]) for row in table.where(query=query)))
            for query in dict.fromkeys(str(row["query"]) for row in table.where())
        ],
    }
    chart = Chart(title, "query", f"run time / {base}, same packets", series, bars=True, level=1.0)
    return Figure(table, chart, beside)


def _points(table: Table, y: str, **wanted: str | int) -> Points:
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
            until = thread_time() + pause
            while thread_time() < until:
                pass
        return value
