"""Groups that move between slots, simulated with the real distribution manager: drifting load, and 004's figures 16
and 21 as the model has them. Nothing here is timed except the decisions (lab/bench/simulated_slots.py).
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from eddyline.balance.forced import SpillMode
from eddyline.balance.manager import DistributionManager
from eddyline.balance.slot_map import SlotMap
from lab.bench import balance_sim, skewed_loads
from lab.bench.simulated_slots import Course, SimulatedSlots, Workload
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

Lines = dict[str, list[tuple[str | int, float]]]

OFF = "no balance"
MODES: tuple[SpillMode | None, ...] = (None, "lazy-disk", "active-disk", "auto")


def drift(quick: bool, say: Say) -> Figure:
    """CPU of the most loaded slot over the mean, by time, for each kind of load with and without balance."""
    slots, groups, hours = (20, 640, 0.5) if quick else (balance_sim.SLOTS, balance_sim.GROUPS, balance_sim.HOURS)
    table, lines = Table(("side", "minute", "most_over_mean", "moves", "decision_ms")), Lines()
    for make in (skewed_loads.drift, skewed_loads.step, skewed_loads.alternating):
        load = make(slots, groups, hours)
        for side, manager in ((f"{load.name}, {OFF}", None), (load.name, DistributionManager())):
            course = SimulatedSlots(load, manager).run()
            decisions = course.decision_seconds or [0.0] * load.batches
            moves = course.moves or [0] * load.batches
            for batch, most in enumerate(course.most):
                table.add(side, _minute(load, batch), most, moves[batch], 1000 * decisions[batch])
            lines[side] = _points(load, course.most, 24)
            say(f"{side}: {sum(moves)} moves, at most {1000 * max(decisions):.1f} ms for a decision")
    title = f"Simulated: CPU of the most loaded of {slots} slots over the mean"
    return Figure(table, Chart(title, "minute", "times the mean", lines, log_y=True))


def memory(quick: bool, say: Say) -> Figure:
    """Memory of two machines whose groups are busy in turns, with and without balance."""
    groups = 50 if quick else 500
    load = skewed_loads.busy_machine(groups)
    off, on = SimulatedSlots(load, None).run(), balance_sim.alternated(0.9, 15.0, groups)
    table, lines = Table(("side", "minute", "bytes")), Lines()
    for name, course in ((OFF, off), ("90 %, every 15 s", on)):
        for slot in range(load.slot_map.slots):
            side = f"M{slot + 1}, {name}"
            held = [float(memory[slot]) for memory in course.memory]
            for batch, size in enumerate(held):
                table.add(side, _minute(load, batch), size)
            lines[side] = _points(load, held, 12)
    say(f"{sum(on.moves)} moves in an hour")
    return Figure(table, Chart("Simulated: state by machine, busy in turns", "minute", "bytes", lines))


def disk(quick: bool, say: Say) -> Figure:
    """Results by time where state is larger than memory and slots differ in join ratio."""
    table, lines = Table(("side", "minute", "results")), Lines()
    for mode in MODES:
        side, load = mode or OFF, skewed_loads.join_ratios(SlotMap(3, 60), 60 if quick else 360)
        course = SimulatedSlots(load, None if mode is None else DistributionManager(load.limit, mode)).run()
        made = list(accumulate(course.results))
        for batch, results in enumerate(made):
            table.add(side, _minute(load, batch), results)
        lines[side] = _points(load, made, 12)
        say(f"{side}: {made[-1]:.0f} results, {course.on_disk.max():.0f} rows on disk in the slot with the most")
    return Figure(table, Chart("Simulated: results, join ratios 4 and 1", "minute", "results so far", lines))


def decisions(quick: bool, say: Say) -> Figure:
    """Milliseconds of a decision, by slots, with 64 groups each."""
    table, lines = Table(("slots", "decision", "ms")), Lines()
    for slots in (10, 30) if quick else balance_sim.MANY_SLOTS:
        load = skewed_loads.drift(slots, 64 * slots, 0.1 if quick else 0.5)
        course: Course = SimulatedSlots(load, DistributionManager()).run()
        for name, value in (
            ("median", float(np.median(course.decision_seconds))),
            ("slowest", max(course.decision_seconds[1:])),
        ):
            table.add(slots, name, 1000 * value)
            lines.setdefault(name, []).append((slots, 1000 * value))
        say(f"{slots} slots: {sum(course.moves)} moves")
    title = "CPU milliseconds of a decision, 64 groups a slot"
    return Figure(table, Chart(title, "slots", "ms", lines, log_y=True, level=balance_sim.DECISION))


def _minute(load: Workload, batch: int) -> float:
    """Minutes of stream time: a batch has the rows of its interval, however long it takes."""
    return (batch + 1) * load.seconds / 60


def _points(load: Workload, values: list[float], count: int) -> list[tuple[str | int, float]]:
    """So many points of a line, evenly spaced."""
    each = max(1, len(values) // count)
    return [(f"{_minute(load, batch):g}", values[batch]) for batch in range(each - 1, len(values), each)]
