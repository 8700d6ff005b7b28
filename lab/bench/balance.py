"""Partition groups that move between real slots, in one process by the batch protocol.

    skew    2/3 of the groups are in one of three slots: how many moves bring their memory together
    hour    an hour's worth of batches, with 31 moves and without: what the moves cost
    pause   a group of a million rows moves: how long its two slots are busy with it, and the third one
    even    even data with balance=auto beside balance=off

All times are CPU seconds. Slots take their turns one after the other here, so the turn of each can be measured alone.

An hour's worth of batches is 360 batches of 10 seconds. Windows have a minute, and each move takes an eighth of the
groups of one slot to another. A move costs about as much as its rows: with windows twice as long it costs twice as
much. The job with moves and the one without take turns, batch by batch, over the same rows. Moves are closer together
than in an hour, so that there are enough of them for a median, from which the cost in an hour is computed.
"""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import eddyline
from eddyline.balance.slot_map import SlotMap
from eddyline.bound.model import BoundQuery
from eddyline.errors import InternalError, SettingError
from eddyline.protocol.balancer import Balancer
from eddyline.settings import Settings
from lab.bench import Result
from lab.bench.against import answer, side
from lab.bench.stepped_job import ScriptedMap, SteppedJob
from lab.bench.streams import query_over, streams

SLOTS = 3
SECONDS = 10.0
"""Seconds of stream time in a batch."""
RATIO, MOST_MOVES = 0.8, 3
MOVES, BATCHES, WINDOW = 31, 360, 6
"""Moves and batches of an hour, and batches of a window."""
COST, PAUSE = 1.02, 0.2
GROUP_ROWS, GROUPS = 1_000_000, 8
"""Rows of a group that moves, and the number of such groups."""

OURS, THEIRS = "this checkout", "the other checkout"
SIDE = """
import gc, json, sys
try:  # where the laboratory was in older checkouts
    from eddyline.benchmarks.stepped_job import SteppedJob
    from eddyline.benchmarks.streams import query_over, streams
except ImportError:
    from lab.bench.stepped_job import SteppedJob
    from lab.bench.streams import query_over, streams
from eddyline.settings import Settings

rows, batches = 100_000, 12
data = streams({"a": ("a",), "b": ("a",)}, rows * batches, 4 * rows, 100)
window = "[RANGE 40 SECONDS]"
select = f"SELECT a.ts, b.ts AS t, a.a, a.v, b.v AS w FROM a {window}, b {window} WHERE a.a = b.a"
query = query_over(data, select)

def once():
    with SteppedJob(query, Settings(slots=3)) as job:
        parts = [[(n, b.slice(at * rows, rows)) for n, b in data.items()] for at in range(batches)]
        return sum(job.batch(part).cpu for part in parts), job.digest

once()
print("ready", flush=True)
for _ in sys.stdin:
    gc.collect()
    print(json.dumps(once()), flush=True)
"""
"""The program of a side of `beside`. It uses only what older checkouts have, too."""

Rows = list[tuple[str, pa.RecordBatch]]

_log = logging.getLogger(__name__)


def run(part: str | None = None, against: str | None = None) -> list[Result]:
    """All parts, or one of them; or a job with balance=off beside that of another checkout."""
    if against is not None:
        return beside(against)
    parts: dict[str, Callable[[], list[Result]]] = {"skew": skew, "hour": hour, "pause": pause, "even": even}
    if part is not None and part not in parts:
        raise SettingError(f"--part {part}: there is {', '.join(parts)}")
    return [result for name, measure in parts.items() if part in (None, name) for result in measure()]


class Rising:
    """A clock that goes on by the seconds of a batch whenever it is read."""

    def __init__(self) -> None:
        self._now = 0.0

    def __call__(self) -> float:
        self._now += SECONDS
        return self._now


def skew(rows: int = 60_000, batches: int = 30) -> list[Result]:
    """From 2/3 of the groups in one slot to slots with about as much memory."""
    query, source = _join(rows, batches, window=batches)
    places = np.where(np.arange(256) % 3 < 2, 0, 1 + np.arange(256) % 2)
    first, balancer = ScriptedMap(SlotMap.of(SLOTS, places)), Balancer(None, Rising())
    with SteppedJob(query, Settings(slots=SLOTS, balance="auto"), first) as job:
        job.batch([])
        job.place_by(balancer)
        moves, at_first, before = 0, 0.0, job.commit.next_map
        for batch in source:
            job.batch(batch)
            held = [record.held.bytes for record in job.records]
            ratio, now = min(held) / max(held), job.commit.next_map
            at_first = at_first or ratio
            if moves <= MOST_MOVES and ratio > RATIO:
                break
            moves, before = moves + (now != before), now
    case = "2/3 of the groups in one of three slots"
    return [
        Result(case, "least / most memory at first", at_first, ""),
        Result(case, "least / most memory", ratio, "", RATIO, ratio > RATIO),
        Result(case, "moves until then", moves, "", MOST_MOVES, moves <= MOST_MOVES),
    ]


def hour(rows: int = 100_000, batches: int = 78, window: int = WINDOW, each: int = 4) -> list[Result]:
    """The same rows with and without moves, of which there is one every `each` batches. The cost of a move is the
    median over all moves: other work on the machine changes a sum of CPU times by more than moves do."""
    query, source = _join(rows, batches, window)
    even = SlotMap(SLOTS, 256)
    some = even.groups_of(0)[::8]
    there, moved = ScriptedMap(), list[int]()
    settings = Settings(slots=SLOTS, balance="moving-state")
    more, usual = list[float](), list[float]()
    with SteppedJob(query, settings, there) as one, SteppedJob(query, settings, ScriptedMap()) as other:
        for number, batch in enumerate(source):
            if number >= window and (number - window) % each == 0:
                moved.append(number + 1)  # the groups move before the next batch
                there.to = even.moved(some, to=2) if len(moved) % 2 else even
            if number % 2:
                with_moves, without = one.batch(batch).cpu, other.batch(batch).cpu
            else:
                without, with_moves = other.batch(batch).cpu, one.batch(batch).cpu
            more.append(with_moves - without)
            usual.append(without)
        if one.digest != other.digest:
            raise InternalError(f"the results differ: {one.digest}, {other.digest}")
    batch_cpu, costs = median(usual[window:]), move_costs(more, moved)
    low, middle, high = (float(np.quantile(costs, q)) / batch_cpu for q in (0.25, 0.5, 0.75))
    ratio = 1 + MOVES * middle / BATCHES
    case = f"{MOVES} moves in {BATCHES} batches of {2 * rows:,} rows"
    return [
        Result(case, f"CPU time, with / without, from {len(costs)} moves", ratio, "", COST, ratio <= COST),
        Result(case, "rows of a move", 2 * rows * window * some.size / 256, ""),
        Result(case, "a move, in batches, median", middle, ""),
        Result(case, "a move, in batches, first quartile", low, ""),
        Result(case, "a move, in batches, third quartile", high, ""),
    ]


def move_costs(more: Sequence[float], moved: Sequence[int], length: int = 3) -> list[float]:
    """By move the CPU that it costs, in its batch and those after it, `length` in all. `more` is by batch the CPU with
    moves less that without; where there is no move near, it differs by chance, and its median there is taken off.

    >>> [round(cost, 3) for cost in move_costs([0.1, 0.1, 0.6, 0.2, 0.1, 0.1], [2])]
    [0.6]
    """
    near = {at + n for at in moved for n in range(length)}
    chance = median([d for n, d in enumerate(more) if n not in near] or [0.0])
    return [sum(d - chance for d in more[at : at + length]) for at in moved if at + length <= len(more)]


def pause(rows: int = GROUP_ROWS, rounds: int = 5) -> list[Result]:
    """A group moves to another slot and back, in batches without rows, so that nothing else is measured."""
    batches = 24
    query, source = _join(rows * GROUPS // 2 // batches, batches, window=2 * batches)
    even, there = SlotMap(SLOTS, GROUPS), ScriptedMap()
    sent, received, others, idle = list[float](), list[float](), list[float](), list[float]()
    with SteppedJob(query, Settings(slots=SLOTS, groups=GROUPS, balance="moving-state"), there) as job:
        for batch in source:
            job.batch(batch)
        held = [record.held.rows for record in job.records]
        for number in range(2 * rounds):
            there.to = even if number % 2 else even.moved([0], to=SLOTS - 1)
            sender, receiver = (SLOTS - 1, 0) if number % 2 else (0, SLOTS - 1)
            idle += job.batch([]).turns
            gc.collect()
            turns = job.batch([]).turns
            if number >= 2:  # pages and kernels are new before
                sent.append(turns[sender])
                received.append(turns[receiver])
                others.append(turns[1])
    case = f"a group of {rows:,} rows moves; slots have {', '.join(f'{n:,}' for n in held)}"
    taken = median(received)
    return [
        Result(case, "the receiver's turn, median", 1000 * taken, "ms", 1000 * PAUSE, taken < PAUSE),
        Result(case, "the receiver's turn, at best", 1000 * min(received), "ms"),
        Result(case, "the sender's turn, at best", 1000 * min(sent), "ms"),
        Result(case, "the sender's turn, median", 1000 * median(sent), "ms"),
        Result(case, "the third slot's turn, median", 1000 * median(others), "ms"),
        Result(case, "a turn without a move, median", 1000 * median(idle), "ms"),
    ]


def even(rows: int = 200_000, batches: int = 30) -> list[Result]:
    """Even data: balance=auto keeps accounts of groups, and decides after each batch that all is well."""
    query, source = _join(rows, batches, WINDOW)
    cpu: dict[str, list[float]] = {"off": [], "auto": []}
    auto = Settings(slots=SLOTS, balance="auto")
    with SteppedJob(query, Settings(slots=SLOTS)) as off, SteppedJob(query, auto, Balancer(None, Rising())) as on:
        for number, batch in enumerate(source):
            sides = ("off", off), ("auto", on)
            for name, job in sides if number % 2 else sides[::-1]:
                cpu[name].append(job.batch(batch).cpu)
        assert on.commit.next_map is not None
        moved = on.commit.next_map.elsewhere != ""
        if on.digest != off.digest:
            raise InternalError(f"the results differ: {on.digest}, {off.digest}")
    ratio = median(one / two for one, two in zip(cpu["auto"][WINDOW:], cpu["off"][WINDOW:], strict=True))
    case = f"even data, {batches} batches of {2 * rows:,} rows"
    return [
        Result(case, "CPU time, balance=auto / off, median of batches", ratio, ""),
        Result(case, "groups have moved", float(moved), "", 0, not moved),
    ]


def beside(checkout: str, pairs: int = 3, runs: int = 5) -> list[Result]:
    """A job with three slots and balance=off, beside the same job with the code of another checkout."""
    here, other = Path(eddyline.__file__).parent.parent, Path(checkout, "src").resolve()
    times: dict[str, list[float]] = {OURS: [], THEIRS: []}
    found = set()
    for _ in range(pairs):
        with ExitStack() as started:
            sides = {n: started.enter_context(side(code, "", SIDE)) for n, code in ((OURS, here), (THEIRS, other))}
            for number in range(runs):
                for name in sides if number % 2 == 0 else reversed(sides):
                    seconds, digest = json.loads(answer(sides[name]))
                    times[name].append(seconds)
                    found.add(tuple(digest))
    if len(found) != 1:
        raise InternalError(f"the results differ: {found}")
    ratios = [one / two for one, two in zip(times[OURS], times[THEIRS], strict=True)]
    _log.info("by run: %s", " ".join(f"{ratio:.3f}" for ratio in ratios))
    ratio = median(ratios)
    return [Result("three slots, balance=off", f"CPU time: {OURS} / {THEIRS}", ratio, "", COST, ratio <= COST)]


def _join(rows: int, batches: int, window: int) -> tuple[BoundQuery, list[Rows]]:
    """A join of two streams by key, where each row has about one match, and its batches of `rows` rows a stream."""
    every = int(SECONDS * 1e6) // rows
    data = streams({"a": ("a",), "b": ("a",)}, rows * batches, rows * min(window, batches), every)
    size = f"[RANGE {round(SECONDS * window)} SECONDS]"
    select = f"SELECT a.ts, b.ts AS t, a.a, a.v, b.v AS w FROM a {size}, b {size} WHERE a.a = b.a"
    cut = [[(name, batch.slice(at * rows, rows)) for name, batch in data.items()] for at in range(batches)]
    return query_over(data, select), cut
