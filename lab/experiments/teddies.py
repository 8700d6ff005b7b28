"""Packets against tuples: figures 6, 7 and 8 of the Teddies paper.

The join R.1 = S.1, S.2 = T.1 of three streams of uniform keys within windows, routed at random, so that no order is
better than another. The keys have DOMAIN values and a window has `selectivity * DOMAIN` rows, so a probe finds
`selectivity` matches once the windows are full; `found` in the tables is what a probe found on average over the run,
the filling of the windows included. Results are counted, not kept. Every side takes its input in batches of the same
size; the paper does not say which, so there are several. In figure 6 all sides are divided by the paper's own baseline,
one queue of tuples (one_queue.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from eddyline.plan.plan import Signature
from eddyline.routing.meta_queue import MetaQueue
from eddyline.routing.policies.random import Random
from eddyline.routing.routing_arrays import Entry, Traffic
from eddyline.settings import Settings
from lab.batch_driver import BatchDriver
from lab.bench.streams import query_over, streams
from lab.experiments import Figure, Say
from lab.experiments.chart import Chart, Series
from lab.experiments.one_queue import one_queue
from lab.experiments.rounds import Prepare, Replay, ratio, spread, take_turns
from lab.experiments.table import Table

DOMAIN = 8
SELECTIVITIES = (1, 2, 4, 8, 16, 32, 64)
INPUT_BATCHES = (1, 16, 256)
EXTRA = (0, 10, 30, 100, 300, 1000, 3000)
STEPS = 20_000
"""The approximate number of routing steps in a run; more if filling the windows needs more rows."""
ROWS = 8192
"""The rows of each stream where nothing is timed."""

POINT = ("selectivity", "input_batch", "found")
STEPS_TAKEN = ("tuple_steps", "packet_steps")
SIDES = ("one_queue", "tuple", "packet", "static")
RATIOS = tuple(f"{side}_ratio" for side in SIDES[1:])
"""Over one queue."""
_WORDS = {"tuple": "tuples", "packet": "packets", "static": "static"}
SECONDS = ("tuple_seconds", "packet_seconds")
_QUICK_STEPS = 2000
_EVERY = 1000
"""Microseconds between two rows of a stream."""
_MICRO_BATCH = 2048
_LARGE = 65536
_QUEUES: dict[Signature, str] = {(0b001, 0): "R", (0b010, 0): "S", (0b100, 0): "T", (0b011, 0): "RS", (0b110, 0): "ST"}


def figure_6(quick: bool, say: Say) -> Figure:
    """Run time by selectivity."""
    table = Table((*POINT, "rows", *STEPS_TAKEN, *(f"{s}_seconds" for s in SIDES), *RATIOS, "spread"))
    for selectivity in _selectivities(quick):
        job = _timed_job(selectivity, quick)
        rows = 3 * max(batch.num_rows for batch in job.data.values())
        for input_batch in INPUT_BATCHES:
            tuples = _settings("random", 1, input_batch)
            sides: dict[str, tuple[Settings, Prepare | None]] = {
                "one_queue": (tuples, one_queue),
                "tuple": (tuples, None),
                "packet": (_settings("random", None, input_batch), None),
                "static": (_settings("fixed", _LARGE, input_batch), None),
            }
            seconds, engines = _measured(job, sides, quick)
            over = {side: ratio(seconds[side], seconds["one_queue"]) for side in SIDES[1:]}
            steps = _steps(engines["tuple"]), _steps(engines["packet"])
            took = [median(seconds[side]) for side in SIDES]
            found = _found(engines["packet"])
            table.add(selectivity, input_batch, found, rows, *steps, *took, *over.values(), spread(*seconds.values()))
            say(f"selectivity {selectivity}, input batch {input_batch}: packets / one queue {over['packet']:.3g}")
    series = {
        f"{_WORDS[side]}, input batch {b}": _points(table, "selectivity", f"{side}_ratio", b)
        for side, batches in (("packet", INPUT_BATCHES), ("tuple", INPUT_BATCHES), ("static", INPUT_BATCHES[-1:]))
        for b in batches
    }
    title = "Run time by join selectivity"
    chart = Chart(title, "join selectivity", "run time / one queue of tuples", series, log_y=True, level=1.0)
    return Figure(table, chart, _apart(table, "selectivity"))


def figure_7(quick: bool, say: Say) -> Figure:
    """Occupancy of the meta-queues by selectivity: tuples taken from a queue over how often it was scheduled."""
    table = Table((*POINT, *_QUEUES.values()))
    for selectivity in _selectivities(quick):
        job = _job(selectivity, _QUICK_STEPS // 6 if quick else ROWS)
        for input_batch in INPUT_BATCHES:
            _, engine = job.run(_settings("random", None, input_batch))
            queues = engine.slot.executor.eddy.scheduler.queues
            table.add(selectivity, input_batch, _found(engine), *(_occupancy(queues.get(s)) for s in _QUEUES))
        say(f"selectivity {selectivity}: done")
    shown = INPUT_BATCHES[1]
    series = {name: _points(table, "selectivity", name, shown) for name in _QUEUES.values()}
    title = f"Mean occupancy of the meta-queues when scheduled, input batch {shown}"
    return Figure(table, Chart(title, "join selectivity", "tuples", series, log_y=True))


def figure_8(quick: bool, say: Say) -> Figure:
    """Run time by the cost of a routing decision, at selectivity 1."""
    table = Table(("extra", "input_batch", *SECONDS, "packet_ratio", "spread"))
    job = _timed_job(1, quick)
    for extra in EXTRA[::3] if quick else EXTRA:
        for input_batch in INPUT_BATCHES:
            burden = partial(_burden, extra)
            sides: dict[str, tuple[Settings, Prepare | None]] = {
                "tuple": (_settings("random", 1, input_batch), burden),
                "packet": (_settings("random", None, input_batch), burden),
            }
            seconds, _ = _measured(job, sides, quick)
            packets, worst = ratio(seconds["packet"], seconds["tuple"]), spread(*seconds.values())
            table.add(extra, input_batch, median(seconds["tuple"]), median(seconds["packet"]), packets, worst)
            say(f"{extra} increments a decision, input batch {input_batch}: packets / tuples {packets:.3g}")
    series = {f"input batch {b}": _points(table, "extra", "packet_ratio", b) for b in INPUT_BATCHES}
    title = "Run time by the cost of a routing decision, join selectivity 1"
    chart = Chart(title, "increments per decision", "packets / per-tuple eddy", series, log_y=True, level=1.0)
    return Figure(table, chart, _apart(table, "extra"))


class Busy(Random):
    """A policy that counts to `extra` before every decision, to make decisions expensive."""

    def __init__(self, extra: int, seed: int = 0) -> None:
        super().__init__(seed)
        self._extra = extra
        self.counter = 0

    def decide(self, entry: Entry) -> Traffic:
        """A random decision, after counting."""
        for _ in range(self._extra):
            self.counter += 1
        return super().decide(entry)


def _burden(extra: int, engine: BatchDriver) -> None:
    engine.slot.executor.eddy._router = Busy(extra)


def _selectivities(quick: bool) -> Sequence[int]:
    return SELECTIVITIES[:4] if quick else SELECTIVITIES


def _timed_job(selectivity: int, quick: bool) -> Replay:
    """The join with as many rows as make about STEPS steps."""
    return _job(selectivity, (_QUICK_STEPS if quick else STEPS) // (3 * (1 + selectivity)))


def _job(selectivity: int, rows: int) -> Replay:
    """The join with `rows` rows of each stream, or more if the windows need more."""
    window = selectivity * DOMAIN
    rows = max(window * 3 // 2, rows)
    data = streams({"r": ["a"], "s": ["a", "b"], "t": ["b"]}, rows, DOMAIN, _EVERY)
    last = f"[RANGE {window * _EVERY - 1} MICROSECONDS]"  # exactly `window` rows, the newest included
    select = f"SELECT COUNT(*) AS n FROM r {last}, s {last}, t {last} WHERE r.a = s.a AND s.b = t.b"
    return Replay(query_over(data, select), data, _MICRO_BATCH)


def _settings(router: str, packet: int | None, input_batch: int) -> Settings:
    """Settings with which every packet is a decision, as in the paper."""
    return Settings(router=router, packet=packet, input_batch=input_batch, reroute_every=1, plan="mjoin")


def _measured(
    job: Replay, sides: Mapping[str, tuple[Settings, Prepare | None]], quick: bool
) -> tuple[dict[str, list[float]], dict[str, BatchDriver]]:
    """The seconds of each side by round, and its engine after the last round."""
    for settings, prepare in sides.values():
        job.first_rows().run(settings, prepare)
    return take_turns({name: partial(job.turns, *how) for name, how in sides.items()}, quick)


def _steps(engine: BatchDriver) -> int:
    return sum(traffic.calls for entry in engine.slot.executor.eddy.routes.entries.values() for traffic in entry.steps)


def _found(engine: BatchDriver) -> float:
    steps = [traffic for entry in engine.slot.executor.eddy.routes.entries.values() for traffic in entry.steps]
    return sum(t.produced for t in steps) / sum(t.tuples for t in steps)


def _occupancy(queue: MetaQueue | None) -> float:
    """The mean number of tuples taken from a queue at a time; 0 if it was never scheduled."""
    return queue.tuples / queue.packets if queue is not None and queue.packets else 0.0


def _points(table: Table, x: str, y: str, input_batch: int) -> list[tuple[str | int, float]]:
    return [(int(row[x]), float(row[y])) for row in table.where(input_batch=input_batch)]


def _apart(table: Table, x: str) -> Series:
    values = dict.fromkeys(int(row[x]) for row in table.where())
    return {"rounds apart": [(v, max(float(row["spread"]) for row in table.where(**{x: v}))) for v in values]}
