"""Moving state beside parallel track, for groups that move to other slots: figures 23.9 to 23.15 of dissertation 002.

In `ways` all streams have the same rate, which differs from setting to setting, as the window does; the plan stays. In
`late` rates fall to a twentieth for two of three streams, and only then groups may move: much state is there, and
little comes.
"""

from __future__ import annotations

from statistics import median

from lab.experiments import Figure, Say
from lab.experiments.chart import Chart
from lab.experiments.paced_slots import (
    LM_MSLB,
    LM_PTLB,
    MSLB,
    NEITHER,
    PTLB,
    Phase,
    SlotJoin,
    SlotRun,
    compared,
    faster,
)
from lab.experiments.table import Table

RATES, WINDOWS = (30, 40, 50), (15, 30, 45, 60)
SCALE, QUICK = 30.0, 6.0
"""Rows for each row of the dissertation."""
SECONDS = 60.0
ROUNDS = 1

Lines = dict[str, list[tuple[str | int, float]]]


def ways(quick: bool, say: Say) -> Figure:
    """Throughput over that without moves, by window and rate, and how long moves take."""
    scale = QUICK if quick else SCALE
    table = Table(("rate", "window", "side", "times_neither", "moves", "track_seconds", "move_seconds"))
    lines = Lines()
    for rate in RATES[::2] if quick else RATES:
        for window in WINDOWS[::3] if quick else WINDOWS:
            phase = Phase(SECONDS, (rate * scale,) * 3)
            join = SlotJoin((phase,), window, keys=round(100 * scale), second_keys=100, batch=4.0)
            rounds = compared(join, (NEITHER, PTLB, MSLB), ROUNDS)
            for number, one in enumerate(rounds[0]):
                ratio = faster(rounds, number)
                moves = sum(batch.moves for batch in one.batches)
                lengths = _on_track(one, join.batch), _moving(one)
                table.add(rate, window, one.side.name, ratio, moves, *lengths)
                if number:
                    lines.setdefault(f"{one.side.name}, rate {rate}", []).append((window, ratio))
                    say(
                        f"rate {rate}, window {window}: {one.side.name} {ratio:.2f} times neither,"
                        f" {lengths[0]:.0f} s on a track, {1000 * lengths[1]:.1f} ms longer batches with a move"
                    )
    title = "Throughput with groups that move over that without"
    return Figure(table, Chart(title, "window, seconds", "times", lines, level=1.0))


def late(quick: bool, say: Say) -> Figure:
    """Results by time where rates have fallen before groups move."""
    scale = QUICK if quick else SCALE
    phases = Phase(30.0, (100 * scale,) * 3), Phase(60.0, (100 * scale, 5 * scale, 5 * scale))
    join = SlotJoin(phases, 30.0, keys=round(300 * scale), second_keys=100, batch=2.0)
    runs = compared(join, (NEITHER, LM_PTLB, LM_MSLB), 1, rebalance_at=15)[0]
    table, lines = Table(("side", "batch", "seconds", "results", "state_tuples")), Lines()
    for one in runs:
        seconds, results = 0.0, 0
        for number, batch in enumerate(one.batches):
            seconds, results = seconds + batch.seconds, results + batch.results
            table.add(one.side.name, number, seconds, results, batch.state)
        late_batches = one.batches[15:]
        spent = [sum(b.seconds for b in late_batches[: n + 1]) for n in range(len(late_batches))]
        each = max(1, len(spent) // 10)
        lines[one.side.name] = [(f"{join.batch * (n + 1):g}", spent[n]) for n in range(each - 1, len(spent), each)]
        say(
            f"{one.side.name}: {spent[-1]:.3f} s after the change, the longest batch"
            f" {1000 * max(b.seconds for b in late_batches):.1f} ms, {sum(b.moves for b in one.batches)} moves"
        )
    title = "Time taken since rates have fallen and groups move"
    return Figure(table, Chart(title, "seconds of the streams since then", "seconds taken", lines))


def _on_track(run: SlotRun, batch: float) -> float:
    """Seconds of the streams in which groups were on a parallel track."""
    return batch * sum(one.on_track > 0 for one in run.batches)


def _moving(run: SlotRun) -> float:
    """By how much batches that begin with a move take longer than the two before and the two after, in the mean."""
    found = []
    for number, one in enumerate(run.batches[:-1]):
        near = [
            run.batches[n].seconds for n in (number - 1, number, number + 2, number + 3) if 0 <= n < len(run.batches)
        ]
        if one.moves:
            found.append(run.batches[number + 1].seconds - median(near))
    return sum(found) / len(found) if found else 0.0
