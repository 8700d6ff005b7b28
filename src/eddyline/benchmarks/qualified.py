"""`bench qualified`: it matters which plan runs.

A join with one selective edge and others that multiply tuples. The multi-way join computes the selective part again and
again; a binary tree must keep what the multiplying edges make. The limits are set between what was
measured, so that the multi-way join is over the CPU limit and the cheapest binary tree over the memory limit: then
`plan=auto` with these limits has to find a plan that holds both. In the second part no CPU limit is set, and all plans
have the same memory limit: `plan=auto` has to be faster than both pure shapes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
import pyarrow as pa

from eddyline.benchmarks import Result
from eddyline.benchmarks.streams import START, Streams, query_over
from eddyline.engine.batch import LocalEngine
from eddyline.query.model import Query
from eddyline.settings import Settings

SECONDS, WINDOW, BATCH = 12.0, 1.0, 0.1
ROUNDS = 3
RATES = (57_000, 44_000, 51_000, 76_000)
EDGES = ((0, 1), (0, 2), (1, 3))
FAN_OUTS = (4.5, 4.5, 0.2)
BINARY = "((s0 (s1 s3)) s2)"


@dataclass(frozen=True)
class Measured:
    """CPU seconds per second of event time and the most bytes of state, once windows are full."""

    cpu: float
    memory: int
    results: int
    tree: str


def run() -> list[Result]:
    """Both parts."""
    data = streams()
    query = _query(data)
    fixed = {name: Settings(plan=plan, optimizer="off") for name, plan in (("mjoin", "mjoin"), ("binary", BINARY))}
    pure = {name: _least([_run(query, data, settings) for _ in range(ROUNDS)]) for name, settings in fixed.items()}
    cpu, memory = 0.85 * pure["mjoin"].cpu, int(0.85 * pure["binary"].memory)
    limited, free = Settings(cpu=cpu, memory=memory), Settings(memory=memory)
    sides: dict[str, list[Measured]] = {name: [] for name in ("mjoin", "auto", "auto, cpu limit")}
    for _ in range(ROUNDS):
        for name, settings in (("mjoin", fixed["mjoin"]), ("auto", free), ("auto, cpu limit", limited)):
            sides[name].append(_run(query, data, settings))
    best = {name: _least(runs) for name, runs in sides.items()}
    if len({m.results for m in (*pure.values(), *best.values())}) != 1:
        raise AssertionError("results differ")
    chosen = best["auto, cpu limit"]
    faster = best["mjoin"].cpu / best["auto"].cpu
    return [
        Result("multi-way join", "CPU / limit", pure["mjoin"].cpu / cpu, ""),
        Result("multi-way join", "memory / limit", pure["mjoin"].memory / memory, ""),
        Result(f"binary tree {BINARY}", "CPU / limit", pure["binary"].cpu / cpu, ""),
        Result(f"binary tree {BINARY}", "memory / limit", pure["binary"].memory / memory, ""),
        Result(f"plan=auto {chosen.tree}", "CPU / limit", chosen.cpu / cpu, "", 1.0, chosen.cpu <= cpu),
        Result(f"plan=auto {chosen.tree}", "memory / limit", chosen.memory / memory, "", 1.0, chosen.memory <= memory),
        Result(f"plan=auto {best['auto'].tree}", "throughput / multi-way join", faster, "", 1.0, faster > 1.0),
    ]


def streams() -> Streams:
    """Streams s0, s1, ...; a row of the rarer side of an edge finds about its fan-out of rows."""
    generator = np.random.default_rng(7)
    columns: list[dict[str, object]] = []
    for rate in RATES:
        rows = int(SECONDS * rate)
        times = np.sort(generator.integers(0, int(SECONDS * 1e6), rows)) + START
        columns.append({"ts": pa.array(times, pa.timestamp("us")), "v": generator.random(rows)})
    for number, ((one, other), fan_out) in enumerate(zip(EDGES, FAN_OUTS, strict=True)):
        values = max(1, int(WINDOW * max(RATES[one], RATES[other]) / fan_out))
        for source in (one, other):
            columns[source][f"e{number}"] = generator.integers(0, values, int(SECONDS * RATES[source]))
    return {f"s{i}": pa.record_batch(made) for i, made in enumerate(columns)}


def _query(data: Streams) -> Query:
    windows = ", ".join(f"{name} [RANGE {int(WINDOW)} SECONDS]" for name in data)
    where = " AND ".join(f"s{a}.e{n} = s{b}.e{n}" for n, (a, b) in enumerate(EDGES))
    return query_over(data, f"SELECT s0.v AS v FROM {windows} WHERE {where}")


def _batches(data: Streams) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
    """Of BATCH seconds of event time each."""
    times = {name: batch.column("ts").cast(pa.int64()).to_numpy() for name, batch in data.items()}
    at = dict.fromkeys(times, 0)
    for step in range(1, round(SECONDS / BATCH) + 1):
        ends = {name: int(np.searchsorted(t, START + step * BATCH * 1e6)) for name, t in times.items()}
        yield [(name, data[name].slice(at[name], end - at[name])) for name, end in ends.items()]
        at = ends


def _run(query: Query, data: Streams, settings: Settings) -> Measured:
    """The second half counts: windows are full by then, and a plan has been found."""
    engine = LocalEngine(query, settings)
    results, begin, memory = 0, 0.0, list[int]()
    steps = round(SECONDS / BATCH)
    for number, rows in enumerate(_batches(data)):
        if number == steps // 2:
            begin = process_time()
        results += sum(batch.num_rows for batch in engine.batch(rows).results)
        if number >= steps // 2:
            memory.append(engine.slot.peak_bytes)
    cpu = (process_time() - begin) / (SECONDS / 2)
    return Measured(cpu, int(median(memory)), results, engine.slot.plan.text)


def _least(runs: list[Measured]) -> Measured:
    return min(runs, key=lambda run: run.cpu)
