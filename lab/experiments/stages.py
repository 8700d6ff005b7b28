"""Operator-level distribution (002, chapter 19 and 26.3): a chain of four streams on three keys as one stage whose rows
are replicated, and as two stages with a shuffle between them.

    a.a = b.a AND b.b = c.b AND c.c = d.c, all within a window

In one stage 8 slots form a grid: a and b are placed by the first key, c and d by the third, and each row goes to all
slots along the other axis. In two stages the first joins a with b by the first key, and c with d by the third, without
replication; its results travel to the second stage, which joins them by the second key. The stages are real jobs, one
after the other in each batch, and all parcels are serialised. The results of both ways are the same.

`gain` is the CPU time of one stage over that of two. `gain of the slowest slot` compares the sum over batches of the
longest turn, which is how long batches take if every slot has a CPU of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eddyline.bound.model import BoundQuery
from eddyline.errors import InternalError
from eddyline.plan.partition import partition
from eddyline.plan.plan import Plan
from eddyline.settings import Settings
from lab.bench.stepped_job import Step, SteppedJob
from lab.bench.streams import Streams, query_over, streams
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.table import Table

SLOTS = 8
KEYS = {"a": ("a",), "b": ("a", "b"), "c": ("b", "c"), "d": ("c",)}
PLANS = ("mjoin", "((a b) (c d))")
"""The plans of the one stage; the quicker one counts."""
BAR = 1.3


@dataclass(frozen=True)
class Chain:
    """A chain of four streams: `rows` a batch of each stream, windows of `window` batches. A row of a has about `first`
    results with b, as c has with d, and there are about `last` results of all four for each row of a."""

    rows: int
    window: int
    first: float
    last: float

    @property
    def micros(self) -> int:
        """The window."""
        return self.rows * self.window

    def data(self, batches: int) -> Streams:
        """The rows of all streams, one a microsecond; the second key is drawn from another domain than the others."""
        held = self.rows * self.window
        made = streams(KEYS, self.rows * batches, max(1, round(2 * held / self.first)), every=1)
        pairs = held * self.first * self.first
        domain, random = max(1, round(2 * pairs / self.last)), np.random.default_rng(7)
        for name in ("b", "c"):
            at = made[name].schema.get_field_index("b")
            keys = pa.array(random.integers(0, domain, made[name].num_rows))
            made = {**made, name: made[name].set_column(at, "b", keys)}
        return made


class Ways:
    """The jobs of both ways over the same rows."""

    def __init__(self, chain: Chain, batches: int, started: ExitStack) -> None:
        data = chain.data(batches)
        window = f"[RANGE {chain.micros} MICROSECONDS]"
        self._batches = [
            {name: batch.slice(at * chain.rows, chain.rows) for name, batch in data.items()} for at in range(batches)
        ]
        out = "epoch_us({0}.ts) AS {0}t, {0}.v AS {0}v"
        whole = query_over(
            data,
            f"SELECT {', '.join(out.format(s) for s in 'abcd')} FROM {', '.join(f'{s} {window}' for s in 'abcd')}"
            " WHERE a.a = b.a AND b.b = c.b AND c.c = d.c",
        )
        self.estimate = partition(Plan(whole), SLOTS).estimate
        self.one = {plan: started.enter_context(_job(whole, plan)) for plan in PLANS}
        pairs = {}
        for left, right, key in (("a", "b", "a"), ("c", "d", "c")):
            with_key = "b" if left == "a" else "c"
            pairs[left] = query_over(
                {name: data[name] for name in (left, right)},
                f"SELECT {out.format(left)}, {out.format(right)}, {with_key}.b"
                f" FROM {left} {window}, {right} {window} WHERE {left}.{key} = {right}.{key}",
            )
        self.first = {name: started.enter_context(_job(query)) for name, query in pairs.items()}
        made = {name: _timed([], name) for name in pairs}
        late = f"<= {chain.micros}"
        self.second = started.enter_context(
            _job(
                query_over(
                    made,
                    f"SELECT a.at, a.av, a.bt, a.bv, c.ct, c.cv, c.dt, c.dv FROM a {window}, c {window}"
                    f" WHERE a.b = c.b AND c.newest - a.oldest {late} AND a.newest - c.oldest {late}",
                )
            )
        )

    def steps(self) -> Iterator[tuple[dict[str, Step], list[Step]]]:
        """For each batch: the step of the one stage by plan, and those of the two stages."""
        for batch in self._batches:
            one = {plan: job.batch(batch.items()) for plan, job in self.one.items()}
            two, between = [], {}
            for name, job in self.first.items():
                two.append(job.batch((stream, batch[stream]) for stream in ("ab" if name == "a" else "cd")))
                between[name] = _timed(job.results, name)
            two.append(self.second.batch(between.items()))
            yield one, two

    def check(self) -> None:
        """InternalError if the results differ."""
        digests = {job.digest for job in (*self.one.values(), self.second)}
        if len(digests) != 1:
            raise InternalError(f"one stage and two have other results: {digests}")


def gain(quick: bool, say: Say) -> Figure:
    """Rows shipped and stored, and CPU, by how many results the first stage has."""
    table = Table(
        (
            "window", "first_ratio", "results", "shipped_one", "shipped_two", "stored_one", "stored_two",
            "cpu_one", "cpu_two", "gain", "gain_slowest",
        )
    )  # fmt: skip
    rows = 2000 if quick else 40_000
    lines: dict[str, list[tuple[str | int, float]]] = {}
    for window in (2, 6):
        for first in (0.25, 1.0, 4.0):
            chain = Chain(rows, window, first, last=0.5)
            found = _measured(chain, window + 4)
            table.add(window, first, *found)
            lines.setdefault(f"CPU, window of {window} batches", []).append((f"{first:g}", found[-2]))
            lines.setdefault(f"slowest slot, window of {window} batches", []).append((f"{first:g}", found[-1]))
            say(f"window of {window} batches, {first:g} results of the first stage a row: gain {found[-2]:.2f}")
    title = "Two stages with a shuffle: CPU of one stage over that of two"
    return Figure(table, Chart(title, "results of the first stage for each row", "times", lines, level=BAR))


def _measured(chain: Chain, batches: int) -> tuple[float, ...]:
    with ExitStack() as started:
        ways = Ways(chain, batches, started)
        cpu = dict.fromkeys((*PLANS, "two"), 0.0)
        slowest = dict.fromkeys((*PLANS, "two"), 0.0)
        shipped, passed = dict.fromkeys(("one", "two"), 0), 0
        for number, (one, two) in enumerate(ways.steps()):
            if number < chain.window:  # windows are not full yet
                continue
            passed += 1
            for plan, step in one.items():
                cpu[plan] += step.cpu
                slowest[plan] += max(step.turns)
            cpu["two"] += sum(step.cpu for step in two)
            slowest["two"] += sum(max(step.turns) for step in two)
            shipped["one"] += _received(ways.one[PLANS[0]])
            shipped["two"] += sum(map(_received, (*ways.first.values(), ways.second)))
        ways.check()
        read = 4 * chain.rows * passed
        direct = ways.one[PLANS[0]]
        stored = sum(map(_held, (*ways.first.values(), ways.second)))
        best = min(PLANS, key=lambda plan: cpu[plan])
        expected = ways.estimate.shipped / ways.estimate.read
        if abs(shipped["one"] / read / expected - 1) > 0.02:
            raise InternalError(f"{shipped['one'] / read:.3f} copies of a row were shipped, not {expected:.3f}")
        return (
            direct.digest[0] / (chain.rows * batches),
            shipped["one"] / read,
            shipped["two"] / read,
            _held(direct) / (4 * chain.micros),
            stored / (4 * chain.micros),
            cpu[best],
            cpu["two"],
            cpu[best] / cpu["two"],
            min(slowest[plan] for plan in PLANS) / slowest["two"],
        )


def _job(query: BoundQuery, plan: str = "mjoin") -> SteppedJob:
    return SteppedJob(query, Settings(slots=SLOTS, plan=plan, optimizer="off"), serialised=True)


def _received(job: SteppedJob) -> int:
    return sum(record.rows_in for record in job.records)


def _held(job: SteppedJob) -> int:
    return sum(record.held.rows for record in job.records)


def _timed(results: list[pa.RecordBatch], name: str) -> pa.RecordBatch:
    """Results of the first stage as rows of the second, with their newest and oldest times."""
    one, other = ("at", "bt") if name == "a" else ("ct", "dt")
    columns = [one, one[0] + "v", other, other[0] + "v", "b"]
    types = [pa.int64(), pa.float64(), pa.int64(), pa.float64(), pa.int64()]
    table = pa.Table.from_batches(results, pa.schema(zip(columns, types, strict=True)) if not results else None)
    times = np.stack([table[one].to_numpy(), table[other].to_numpy()])
    newest, oldest = times.max(axis=0), times.min(axis=0)
    order = newest.argsort(kind="stable")
    named = {field: table[field].combine_chunks().take(pa.array(order)) for field in columns}
    ts = pa.array(newest[order], pa.timestamp("us"))
    return pa.record_batch({"ts": ts, **named, "newest": newest[order], "oldest": oldest[order]})
