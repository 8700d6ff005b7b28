"""`bench migration`: changing plans at run time pays.

The joins of three streams swap their selectivities: after the change, the plan that was best before multiplies tuples
and then drops them. `plan=auto` and the plan that was best in the first phase, unchanged, take turns batch by batch;
once with one change and once with many. Throughput is rows over CPU time, and memory is that of the state. Measuring
begins `LAG` windows after each change, when windows are full of the new rows; the whole run from the first change on is
also reported.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from statistics import median
from time import process_time

import numpy as np
from numpy.typing import NDArray

from eddyline.errors import InternalError
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench import Result
from lab.bench.migration_phases import Phase, phased_join

WINDOW, BATCH, LAG = 1.0, 0.25, 4.0
RATE = 20_000.0
EDGES = ((0, 1), (1, 2))
FIRST = "((s0 s1) s2)"
ONCE = ((0.1, 10.0), (10.0, 0.1))
MANY = ((0.2, 12.0), (12.0, 0.2), (0.2, 12.0), (12.0, 0.2))
"""Fan-outs of the two edges, phase by phase."""
SECONDS = 12.0
"""The length of a phase in seconds of event time."""
FASTER, LESS = 1.5, 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SideMeasurements:
    """The measurements of one side: CPU seconds, bytes of state and rows by batch; how often and when its plan
    changed."""

    cpu: NDArray[np.float64]
    memory: NDArray[np.float64]
    rows: NDArray[np.float64]
    changes: tuple[tuple[float, str], ...]


def run() -> list[Result]:
    """Measure one change, then many."""
    return [*_compare("one change", ONCE), *_compare("many changes", MANY)]


def courses(fan_outs: tuple[tuple[float, float], ...], seconds: float, seed: int = 5) -> dict[str, SideMeasurements]:
    """Run the unchanged plan and `plan=auto`, in turns."""
    join = phased_join([Phase(seconds, (RATE,) * 3, fan_out) for fan_out in fan_outs], EDGES, WINDOW, seed)
    sides = {"unchanged": Settings(plan=FIRST, optimizer="off"), "auto": Settings()}
    engines = {name: BatchDriver(join.query, settings, process_time) for name, settings in sides.items()}
    steps = round(join.seconds / BATCH)
    cpu, memory = ({name: np.zeros(steps) for name in sides} for _ in range(2))
    rows, found = np.zeros(steps), dict.fromkeys(sides, 0)
    changes: dict[str, list[tuple[float, str]]] = {name: [] for name in sides}
    for step, batch in enumerate(join.batches(BATCH)):
        rows[step] = sum(part.num_rows for _, part in batch)
        for name in sides if step % 2 else reversed(sides):
            engine = engines[name]
            before, begin = engine.slot.executor.plan.text, process_time()
            found[name] += sum(part.num_rows for part in engine.batch(batch).results)
            cpu[name][step], memory[name][step] = process_time() - begin, engine.slot.peak_bytes
            if engine.slot.executor.plan.text != before:
                changes[name].append((step * BATCH, engine.slot.executor.plan.text))
    if len(set(found.values())) != 1:
        raise InternalError(f"the sides disagree: {found}")
    return {name: SideMeasurements(cpu[name], memory[name], rows, tuple(changes[name])) for name in sides}


def _compare(case: str, fan_outs: tuple[tuple[float, float], ...]) -> list[Result]:
    sides = courses(fan_outs, SECONDS)
    for at, plan in sides["auto"].changes:
        _log.info("%s: %s from second %.1f on", case, plan, at)
    phase, lag = round(SECONDS / BATCH), round(LAG * WINDOW / BATCH)
    steps = np.arange(phase * len(fan_outs))
    wrong = (steps // phase) % 2 == 1  # in the other phases the unchanged plan is the best one
    settled = wrong & (steps % phase >= lag)
    stays, auto = sides["unchanged"], sides["auto"]
    faster = float(stays.cpu[settled].sum() / auto.cpu[settled].sum())
    memory = float(median(auto.memory[settled] / stays.memory[settled]))
    whole = float(stays.cpu[phase:].sum() / auto.cpu[phase:].sum())
    return [
        Result(case, "throughput / unchanged plan, after the change", faster, "", FASTER, faster >= FASTER),
        Result(case, "memory / unchanged plan, after the change", memory, "", LESS, memory <= LESS),
        Result(case, "throughput / unchanged plan, from the first change to the end", whole, ""),
        Result(case, "changes of plan", len(auto.changes), ""),
    ]
