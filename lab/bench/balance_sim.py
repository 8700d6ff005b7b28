"""The distribution manager in a simulation: how long it decides, whether moves converge, and how large everything is.

`large` has 1,000 slots, 64,000 groups and hours of drifting load. `papers` has the cases of 004. `sizes` prints what
grows with the number of slots: reports, the slot map, the manager's state and the time of a decision. Decisions are
timed in CPU seconds of the driver's thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from eddyline.balance.forced import SpillMode
from eddyline.balance.manager import DistributionManager
from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import DEFAULT
from eddyline.codec import as_json
from eddyline.errors import SettingError
from lab.bench import Result, skewed_loads
from lab.bench.ratio_joins import even, ratio_join
from lab.bench.simulated_slots import Course, SimulatedSlots, Workload
from lab.bench.spill_courses import AMPLE, PLAN
from lab.bench.stepped_job import SteppedJob

SLOTS, GROUPS, HOURS = 1000, 64_000, 2.0
DECISION, NOTICED, CONVERGED, FEW_MOVES, SPREAD = 100.0, 10, 0.8, 3, 1.35
"""Bars: milliseconds of a decision, batches until something is noticed, least/most, moves to get there, and the most
loaded slot over the mean once a load that stays the same has been balanced; noise of CPU is in it."""
INTERVALS = (15.0, 30.0, 45.0)
MANY_SLOTS = (10, 100, 1000, 4000)
REAL_SLOTS = (2, 8)

_log = logging.getLogger(__name__)


def run(part: str = "all") -> list[Result]:
    """All parts, or one of them."""
    parts = {"large": large, "papers": papers, "sizes": sizes}
    if part not in {"all", *parts}:
        raise SettingError(f"--part is all, {', '.join(parts)}, not {part}")
    return [result for name, measured in parts.items() if part in ("all", name) for result in measured()]


# 1,000 slots


def large(slots: int = SLOTS, groups: int = GROUPS, hours: float = HOURS) -> Iterator[Result]:
    """Hours of each kind of load."""
    for make in skewed_loads.WORKLOADS:
        load = make(slots, groups, hours)
        off, on = SimulatedSlots(load, None).run(), SimulatedSlots(load, DistributionManager()).run()
        yield from _compared(load, off, on)
        _log.info("%s: %d moves", load.name, sum(on.moves))


def _compared(load: Workload, off: Course, on: Course) -> Iterator[Result]:
    case, half = load.name, len(on.most) // 2
    slowest = 1000 * max(on.decision_seconds)
    yield Result(case, "slowest decision", slowest, "ms", DECISION, slowest < DECISION)
    yield Result(case, "median decision", 1000 * float(np.median(on.decision_seconds)), "ms")
    yield Result(case, "most/mean CPU, no balance", float(np.mean(off.most[half:])), "")
    end = float(np.mean(on.most[-len(on.most) // 10 :]))
    stays = load.name in ("even", "step", "one slot")
    yield Result(case, "most/mean CPU, at the end", end, "", *((SPREAD, end < SPREAD) if stays else ()))
    yield Result(case, "most/mean CPU possible", float(np.mean(on.possible[-len(on.possible) // 10 :])), "")
    yield Result(case, "time of all batches, no balance over balance", sum(off.seconds) / sum(on.seconds), "times")
    moves = sum(on.moves)
    yield Result(case, "moves", moves, "", *((0, moves == 0) if load.name == "even" else ()))
    yield Result(case, "groups moved", sum(on.groups_moved), "")
    share = on.returns / max(1, sum(on.groups_moved))
    yield Result(case, "of them back to where they came from", share, "", 0.02, share <= 0.02)
    yield Result(case, "CPU for opening moved groups", 100 * on.opened / on.worked, "%")
    if load.name == "one slot":
        first = next(batch for batch, count in enumerate(on.moves) if count)
        yield Result(case, "batches until groups move", first, "", NOTICED, first <= NOTICED)
    if load.name == "growing":
        late = noticed(load, on)
        yield Result(case, "batches until it is said", late, "", NOTICED, late <= NOTICED)


def noticed(load: Workload, course: Course) -> int:
    """Batches from when one group has 1.25 times the mean load of slots, so that moves cannot balance them, until the
    manager has said so; 0 if it said so before."""
    group = skewed_loads.growing_group(load.slot_map.groups)
    rates = (load.rates(batch, load.slot_map.places) for batch in range(load.batches))
    over = next(at for at, rate in enumerate(rates) if rate[group] >= 1.25 * rate.sum() / load.slot_map.slots)
    words = f"group {group} has"
    said = (at for at, decided in course.decided if any(words in note for note in decided.notes))
    return max(0, next(said, load.batches) - over)


# The cases of 004


def papers() -> Iterator[Result]:
    """Few slots, as in 004."""
    yield from _three_slots()
    for ratio in (0.9, 0.5):
        for interval in INTERVALS:
            course = alternated(ratio, interval)
            case = f"busy machine, {ratio:.0%}, {interval:g} s"
            yield Result(case, "moves in an hour", sum(course.moves), "")
            yield Result(case, "mean least/most memory", float(np.mean(course.least_most)), "")
    for name, slot_map in (("even", SlotMap(3, 60)), ("2/3 on one slot", skewed_loads.two_thirds())):
        courses = {mode: spilled(slot_map, mode) for mode in (None, "lazy-disk", "active-disk", "auto")}
        for mode, course in courses.items():
            case = f"join ratios 4 and 1, {name}, {mode or 'no balance'}"
            yield Result(case, "results at run time", sum(course.results) / 1e6, "M")
            yield Result(case, "rows on disk of the slot with the most", float(course.on_disk.max()) / 1e6, "M")
        auto, lazy = (sum(courses[mode].results) for mode in ("auto", "lazy-disk"))
        yield Result(f"join ratios 4 and 1, {name}", "auto over lazy-disk", auto / lazy, "times", 1.0, auto >= lazy)


def _three_slots() -> Iterator[Result]:
    rates = np.random.default_rng(0).uniform(500, 1500, 60) * 10
    load = Workload("", skewed_loads.two_thirds(), lambda batch, places: rates, 120, noise=0.02, limit=3_500_000_000)
    course = SimulatedSlots(load, DistributionManager(load.limit)).run()
    reached = next((at for at, ratio in enumerate(course.least_most) if ratio > CONVERGED), load.batches)
    moves = sum(course.moves[:reached])
    yield Result("2/3 of the groups on one of 3 slots", "least/most at the end", course.least_most[-1], "", CONVERGED,
                 course.least_most[-1] > CONVERGED)  # fmt: skip
    yield Result("2/3 of the groups on one of 3 slots", "moves", moves, "", FEW_MOVES, moves <= FEW_MOVES)


def alternated(ratio: float, interval: float, groups: int = 500) -> Course:
    """An hour of a load that follows the groups, with the conditions of 004: the ratio and the interval only."""
    tuning = replace(
        DEFAULT,
        ratio=ratio,
        stop=ratio,
        interval=interval,
        memory_max=0.0,
        difference=0.0,
        patience=1,
        trial_batches=1,
        rest=0.0,
    )
    load = skewed_loads.busy_machine(groups)
    return SimulatedSlots(load, DistributionManager(load.limit, tuning=tuning)).run()


def spilled(slot_map: SlotMap, mode: SpillMode | None) -> Course:
    """An hour of more state than memory."""
    load = skewed_loads.join_ratios(slot_map)
    manager = None if mode is None else DistributionManager(load.limit, mode)
    return SimulatedSlots(load, manager).run()


# Sizes


def sizes() -> Iterator[Result]:
    """What grows with the number of slots, with 64 groups each, after half an hour of drift."""
    yield from _real_sizes()
    for slots in MANY_SLOTS:
        load = skewed_loads.drift(slots, 64 * slots, 0.5)
        simulated = SimulatedSlots(load, DistributionManager())
        course, case = simulated.run(), f"{slots} slots"
        assert course.slot_map is not None
        yield Result(case, "reports of a batch", simulated.report_bytes / 1e6, "MB")
        yield Result(case, "slowest decision", 1000 * max(course.decision_seconds), "ms")
        yield Result(case, "median decision", 1000 * float(np.median(course.decision_seconds)), "ms")
        yield Result(case, "slot map after the drift, in a commit", len(as_json(course.slot_map)) / 1e3, "KB")
        anywhere = SlotMap.of(slots, np.random.default_rng(0).integers(0, slots, 64 * slots))
        yield Result(case, "slot map, every group anywhere", len(as_json(anywhere)) / 1e3, "KB")
        begin = time.thread_time()
        SlotMap.of(slots, anywhere.places)
        yield Result(case, "making that map", 1000 * (time.thread_time() - begin), "ms")
        yield Result(case, "state of the manager, largest in a commit", simulated.state_bytes / 1e3, "KB")
        yield Result(case, "blocks of a shuffle, as many tasks as slots", slots * slots / 1e6, "M")
        _log.info("%s", case)


def _real_sizes() -> Iterator[Result]:
    """Records and commits of a real job, in which a slot has 64 groups and each batch has written a segment."""
    few, many = (_written(slots) for slots in REAL_SLOTS)
    yield Result("a slot of a real job", "record of a batch", many[0] / 1e3, "KB")
    more = (many[1] - few[1]) / (REAL_SLOTS[1] - REAL_SLOTS[0])
    yield Result("a slot of a real job", "its part of a commit", more / 1e3, "KB")


def _written(slots: int) -> tuple[float, int]:
    """The mean size of a record, and the size of a commit, after some batches."""
    groups = 64 * slots
    join = ratio_join([2.0] * groups, 100 * groups, even(100 * groups, groups))
    with SteppedJob(join.query, replace(PLAN, slots=slots, groups=groups, memory=AMPLE)) as job:
        for rows in join.batches(25 * groups):
            job.batch(rows)
        return float(np.mean([len(record.packed()) for record in job.records])), len(as_json(job.commit))
