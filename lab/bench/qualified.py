"""`bench qualified`: the choice of the plan matters.

A join with one selective edge and others that multiply tuples. The multi-way join computes the selective part again and
again; a binary tree must keep the results of the multiplying edges. The limits are set between the measured values, so
that the multi-way join exceeds the CPU limit and the cheapest binary tree exceeds the memory limit: then `plan=auto`
with these limits must find a plan within both. In the second part there is no CPU limit, and all plans have the same
memory limit: `plan=auto` must be faster than both pure shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from time import process_time

from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.timed_joins import TimedJoin, timed_join

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
    """Measure both parts."""
    join = timed_join(RATES, EDGES, FAN_OUTS, SECONDS, WINDOW, seed=7)
    fixed = {name: Settings(plan=plan, optimizer="off") for name, plan in (("mjoin", "mjoin"), ("binary", BINARY))}
    pure = {name: _least([_run(join, settings) for _ in range(ROUNDS)]) for name, settings in fixed.items()}
    cpu, memory = 0.85 * pure["mjoin"].cpu, int(0.85 * pure["binary"].memory)
    limited, free = Settings(cpu=cpu, memory=memory), Settings(memory=memory)
    sides: dict[str, list[Measured]] = {name: [] for name in ("mjoin", "auto", "auto, cpu limit")}
    for _ in range(ROUNDS):
        for name, settings in (("mjoin", fixed["mjoin"]), ("auto", free), ("auto, cpu limit", limited)):
            sides[name].append(_run(join, settings))
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


def _run(join: TimedJoin, settings: Settings) -> Measured:
    """Run a join; only the second half counts, when windows are full and `plan=auto` has chosen a plan."""
    engine = BatchDriver(join.query, settings)
    results, begin, memory = 0, 0.0, list[int]()
    steps = round(SECONDS / BATCH)
    for number, rows in enumerate(join.batches(BATCH)):
        if number == steps // 2:
            begin = process_time()
        results += sum(batch.num_rows for batch in engine.batch(rows).results)
        if number >= steps // 2:
            memory.append(engine.slot.peak_bytes)
    cpu = (process_time() - begin) / (SECONDS / 2)
    return Measured(cpu, int(median(memory)), results, engine.slot.executor.plan.text)


def _least(runs: list[Measured]) -> Measured:
    return min(runs, key=lambda run: run.cpu)
