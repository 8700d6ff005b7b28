"""Jobs of several slots, each of which has a CPU of its own: for figures about load that is shared out unevenly.

The slots are real, and take their turns in this process by the batch protocol. The CPU seconds of each turn are
measured alone. A batch takes as long as its slowest slot, and the next one begins then: all rows are there from the
beginning. So the time of a run is computed, and two cores are enough for any number of slots. Splitting rows and
committing batches is work of other machines, as in the dissertation, and is left out.

The join has three streams (002, figure 18.2), partitioned by a key that all of them have, and another key without
which few rows of b and c match:

    a.p = b.p AND b.p = c.p AND b.q = c.q
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
import pyarrow as pa

from eddyline.balance.slot_map import SlotMap
from eddyline.balance.tuning import BalanceTuning
from eddyline.bound.model import BoundQuery
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import InternalError
from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.balancer import Balancer
from eddyline.protocol.record import Record
from eddyline.protocol.ways import ways_of
from eddyline.settings import Settings
from lab.bench.stepped_job import Digest, ScriptedMap, SteppedJob
from lab.bench.streams import START, Streams, query_over

SLOTS, GROUPS = 4, 100
HEAVY = 0.5
"""The share of the groups in the first slot; the others have as many each."""
PLAN = "((a b) c)"
"""The plan at first."""

_OPTIMIZER = replace(DEFAULT.optimizer, first_rows=4000, interval_rows=4000)
_MANAGER = BalanceTuning(interval=0.0)


@dataclass(frozen=True)
class Phase:
    """Rows a second of the three streams, for some seconds."""

    seconds: float
    rates: tuple[float, float, float]


@dataclass(frozen=True)
class SlotJoin:
    """The join over streams whose rates change. Batches have `batch` seconds."""

    phases: tuple[Phase, ...]
    window: float
    keys: int = 600
    """Values of p."""
    second_keys: int = 200
    """Values of q."""
    batch: float = 2.0
    seed: int = 1

    @property
    def data(self) -> Streams:
        """All rows, with Poisson arrivals."""
        random, made = np.random.default_rng(self.seed), {}
        for number, name in enumerate("abc"):
            times, since = [], 0.0
            for phase in self.phases:
                rows = random.poisson(phase.rates[number] * phase.seconds)
                times.append(np.sort(since + random.random(rows) * phase.seconds))
                since += phase.seconds
            at = (np.concatenate(times) * 1e6).astype(np.int64) + START
            keys = {"p": random.integers(0, self.keys, at.size), "q": random.integers(0, self.second_keys, at.size)}
            made[name] = pa.record_batch({"ts": pa.array(at, pa.timestamp("us")), **keys, "v": random.random(at.size)})
        return made

    def query(self, data: Streams) -> BoundQuery:
        """The query."""
        sources = ", ".join(f"{name} [RANGE {round(self.window * 1e6)} MICROSECONDS]" for name in data)
        values = "a.p, b.q, a.v AS av, b.v AS bv, c.v AS cv"
        return query_over(data, f"SELECT {values} FROM {sources} WHERE a.p = b.p AND b.p = c.p AND b.q = c.q")

    def batches(self, data: Streams) -> Iterator[list[tuple[str, pa.RecordBatch]]]:
        """The rows, batch by batch."""
        times = {name: batch.column("ts").cast(pa.int64()).to_numpy() for name, batch in data.items()}
        at, seconds = dict.fromkeys(times, 0), sum(phase.seconds for phase in self.phases)
        for step in range(1, round(seconds / self.batch) + 1):
            ends = {name: int(np.searchsorted(t, START + step * self.batch * 1e6)) for name, t in times.items()}
            yield [(name, data[name].slice(at[name], end - at[name])) for name, end in ends.items()]
            at = ends


@dataclass(frozen=True)
class Side:
    """How a run adapts: whether slots choose their own plans, and how groups move ('off': they stay)."""

    name: str
    local_plans: bool
    balance: str


NEITHER, LM = Side("neither", False, "off"), Side("LM", True, "off")
MSLB, PTLB = Side("MSLB", False, "moving-state"), Side("PTLB", False, "parallel-track")
LM_MSLB, LM_PTLB = Side("LM + MSLB", True, "moving-state"), Side("LM + PTLB", True, "parallel-track")


@dataclass(frozen=True)
class SlotBatch:
    """A batch of a run: how long it took, by slot; its results, the tuples in all states; moves that were decided after
    it, and groups on a parallel track."""

    turns: tuple[float, ...]
    results: int
    state: int
    moves: int
    on_track: int

    @property
    def seconds(self) -> float:
        """How long it took."""
        return max(self.turns)


@dataclass(frozen=True)
class SlotRun:
    """The batches of a run, and its results."""

    side: Side
    batches: tuple[SlotBatch, ...]
    digest: Digest

    @property
    def seconds(self) -> float:
        """How long it took."""
        return sum(batch.seconds for batch in self.batches)

    def results_at(self, seconds: float) -> float:
        """The results until then."""
        ends = np.cumsum([0.0, *(batch.seconds for batch in self.batches)])
        return float(np.interp(seconds, ends, np.cumsum([0, *(batch.results for batch in self.batches)])))


Load = Callable[[Record], float]
"""The CPU seconds of a slot's turn by which groups move."""


def measured(record: Record) -> float:
    """Those that the slot measured."""
    return record.cpu


class _Elapsed:
    """A placer that lets the balancer's time go on by how long batches take."""

    def __init__(self, load: Load) -> None:
        self._now, self._load = 0.0, load
        self.balancer: Balancer | None = None

    def __call__(self) -> float:
        return self._now

    def place(self, so_far: Adapted, after: AfterBatch) -> Adapted:
        records = [replace(record, cpu=self._load(record)) for record in after.slots]
        self._now += max(record.cpu for record in records)
        assert self.balancer is not None
        return self.balancer(so_far, replace(after, records=records))


def uneven() -> SlotMap:
    """The slot map at first."""
    groups = np.arange(GROUPS)
    return SlotMap.of(SLOTS, np.where(groups < HEAVY * GROUPS, 0, 1 + groups % (SLOTS - 1)))


def run(join: SlotJoin, side: Side, rebalance_at: int | None = None, load: Load = measured) -> SlotRun:
    """Run a side over all batches. With `rebalance_at`, groups do not move before that batch."""
    data = join.data
    tuning: Tuning = replace(DEFAULT, optimizer=_OPTIMIZER)
    balance = "moving-state" if side.balance == "off" else side.balance
    settings = Settings(slots=SLOTS, groups=GROUPS, balance=balance, plan="auto" if side.local_plans else PLAN)
    done = list[SlotBatch]()
    with SteppedJob(join.query(data), settings, ScriptedMap(uneven()), tuning=tuning) as job:
        job.batch([])
        elapsed = _Elapsed(load)
        elapsed.balancer = Balancer(None, elapsed, _MANAGER, ways=ways_of(job.home))
        job.place_by(ScriptedMap())
        before = job.commit.next_map
        for number, rows in enumerate(join.batches(data)):
            if side.balance != "off" and number == (rebalance_at or 0):
                job.place_by(elapsed.place)
            step = job.batch(rows)
            now = job.commit.next_map
            assert now is not None and before is not None
            moves = int((now.places != before.places).any())
            held = sum(record.held.rows for record in job.records)
            done.append(SlotBatch(step.turns, step.results, held, moves, sum(len(t.groups) for t in now.tracks)))
            before = now
        return SlotRun(side, tuple(done), job.digest)


def compared(
    join: SlotJoin, sides: Sequence[Side], rounds: int, rebalance_at: int | None = None, load: Load = measured
) -> list[list[SlotRun]]:
    """The runs of each round, in which the sides take turns. InternalError if their results differ."""
    found = [[run(join, side, rebalance_at, load) for side in sides] for _ in range(rounds)]
    if len({one.digest for of_round in found for one in of_round}) != 1:
        raise InternalError("the sides have other results")
    return found


def faster(rounds: Sequence[Sequence[SlotRun]], side: int, than: int = 0) -> float:
    """How many times as fast a side is as another: the median of the rounds."""
    return median(of_round[than].seconds / of_round[side].seconds for of_round in rounds)
