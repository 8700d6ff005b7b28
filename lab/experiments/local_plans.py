"""Plans that slots choose for themselves, and groups that move: figures 23.1 to 23.8 of dissertation 002.

One of four slots has half of the groups, and the plan at first joins a with b. After the change of rates few rows of b
and c come, and the plan has many tuples of a and b in its intermediate state. Slots may choose another plan (LM), and
groups may move to other slots (MSLB: moving state, PTLB: parallel track).

The rates after the change are those of the dissertation: 100 to 5 to 5, times a constant. Before it they are 5 to 5 to
100 here and 100 each there: then each row would have thousands of results here, and nothing else would be measured.
"""

from __future__ import annotations

from functools import cache

from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.paced_slots import (
    LM,
    LM_MSLB,
    LM_PTLB,
    MSLB,
    NEITHER,
    PTLB,
    Phase,
    SlotJoin,
    SlotRun,
    compared,
)
from lab.experiments.table import Table

SIDES = (NEITHER, LM, PTLB, LM_PTLB, MSLB, LM_MSLB)
COLUMNS = ("side", "batch", "seconds", "results", "state_tuples", "groups_moved", "groups_on_track")
MOMENTS = 10

Lines = dict[str, list[tuple[str | int, float]]]


def join(quick: bool) -> SlotJoin:
    """The join, whose rates change after 30 seconds."""
    rate, keys, after = (10.0, 200, 30.0) if quick else (250.0, 5000, 90.0)
    slow, fast = 5 * rate, 100 * rate
    phases = Phase(30.0, (slow, slow, fast)), Phase(after, (fast, slow, slow))
    return SlotJoin(phases, window=20.0, keys=keys, second_keys=100, batch=5.0)


def throughput(quick: bool, say: Say) -> Figure:
    """Results by time: figures 23.1, 23.4, 23.5 and 23.8."""
    runs, lines = _runs(quick), Lines()
    last = runs[0].seconds
    for one in runs:
        moments = [last * n / MOMENTS for n in range(1, MOMENTS + 1)]
        lines[one.side.name] = [(f"{at:.3g}", one.results_at(at)) for at in moments]
        at = min(run.seconds for run in runs)
        more = one.results_at(at) / runs[0].results_at(at)
        moves = sum(batch.moves for batch in one.batches)
        say(
            f"{one.side.name}: {one.seconds:.2f} s for all rows, {last / one.seconds:.2f} times neither,"
            f" {more:.2f} times the results after {at:.2f} s, groups moved {moves} times"
        )
    title = "Results by time: slots that choose plans (LM), groups that move (PTLB, MSLB)"
    return Figure(_table(runs), Chart(title, "seconds", "results so far", lines))


def state(quick: bool, say: Say) -> Figure:
    """Tuples in all states, by how far the streams are: figures 23.2, 23.3, 23.6 and 23.7."""
    runs, lines = _runs(quick), Lines()
    every = max(1, len(runs[0].batches) // MOMENTS)
    for one in runs:
        shown = range(every - 1, len(one.batches), every)
        batch = join(quick).batch
        lines[one.side.name] = [(f"{(n + 1) * batch:g}", one.batches[n].state) for n in shown]
        say(f"{one.side.name}: at most {max(b.state for b in one.batches)} tuples, {one.batches[-1].state} at the end")
    chart = Chart("Tuples in all states", "seconds of the streams", "tuples", lines, log_y=True)
    return Figure(_table(runs), chart)


@cache
def _runs(quick: bool) -> list[SlotRun]:
    """The runs of both figures."""
    return compared(join(quick), SIDES, rounds=1)[0]


def _table(runs: list[SlotRun]) -> Table:
    table = Table(COLUMNS)
    for one in runs:
        seconds, results = 0.0, 0
        for number, batch in enumerate(one.batches):
            seconds, results = seconds + batch.seconds, results + batch.results
            table.add(one.side.name, number, seconds, results, batch.state, batch.moves, batch.on_track)
    return table
