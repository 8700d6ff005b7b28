"""The events of a run that nobody ran: four streams whose data drifts, in the words of a recorded run.

All numbers follow from the seed and the time, so the same arguments give the same events on every machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

Event = dict[str, Any]

ALIASES = ("o", "p", "s", "a")
NAMES = ("orders", "payments", "parcels", "alarms")
QUERY = """\
SELECT greatest(o.ts, p.ts, s.ts, a.ts) AS ts, o.v, p.v, s.v, a.v
FROM orders [RANGE 2 SECONDS] AS o, payments [RANGE 2 SECONDS] AS p,
     parcels [RANGE 2 SECONDS] AS s, alarms [RANGE 2 SECONDS] AS a
WHERE o.k = p.k AND p.k = s.k AND s.k = a.k"""
PHASES = ((0, 3, 1, 2), (3, 0, 1, 2), (2, 0, 3, 1))
"""The best order of sources in each third of a run."""
TREES = ("(o p s a)", "((o s) p a)", "((s a) p o)")
_EPOCH = 1_767_225_600_000_000


def made_up_run(seconds: int, groups: int = 64, seed: int = 1, end: bool = True) -> Iterator[Event]:
    """The events of so many seconds, in order."""
    drawn = random.Random(seed)
    yield _head(groups)
    number, changes, route = 0, 0, [_order(source, PHASES[0]) for source in range(4)]
    tree, rows, out, late, state = 0, 0, 0, 0, 0
    pending: list[Event] = []
    for second in range(1, seconds + 1):
        phase = min(2, second * 3 // seconds)
        since = second - phase * seconds // 3
        lost = 0.45 if phase and since < 4 else 1.0  # an order that was good is bad for a while
        speed = int((210_000 + 25_000 * math.sin(second / 9) + drawn.uniform(-9e3, 9e3)) * lost)
        rows, out = rows + speed, out + int(speed * 0.28)
        late, state = late + drawn.randrange(3), int(380_000 + 40_000 * math.sin(second / 40))
        t = second + round(drawn.uniform(0, 0.2), 3)
        for source in range(4):
            best = _order(source, PHASES[phase])
            if ((since == 3 or second == 1) and (route[source] != best or second == 1)) or drawn.random() < 0.002:
                number, old, route[source] = number + 1, route[source], best
                cost, before = drawn.uniform(0.03, 0.3), drawn.uniform(0.8, 3)
                yield {
                    "type": "decision",
                    "t": t,
                    "id": number,
                    "kind": "reroute",
                    "at": rows,
                    "slot": source % 2,
                    "what": f"{ALIASES[source]}: {_names(best)} instead of {_names(old)}",
                    "why": f"the rest of the route costs {cost:.3g} us a tuple, the old one {before:.3g} us",
                    "measured": {"instead_of": before / 1e6},
                    "expected": {"expected": cost / 1e6},
                }
                pending.append(_outcome(number, t + 5, 4.1 * lost, 3.2, True))
        if second % 15 == 10 or (since == 5 and phase):
            change = phase != tree and since >= 5
            number += 1
            now, next_ = TREES[tree], TREES[phase] if change else TREES[tree]
            cpu, better = drawn.uniform(0.5, 0.6), drawn.uniform(0.2, 0.3) if change else 0.55
            yield {
                "type": "decision",
                "t": t,
                "id": number,
                "kind": "plan",
                "at": rows,
                "slot": 0,
                "what": f"{now} -> {next_}" if change else f"{now} stays",
                "why": "a regular check found that the data changed: selectivity of o and p 1.2e-06 -> 5.5e-07;"
                f" {cpu:.3g} -> {better:.3g} of a core, 31.2 MB -> 28.4 MB",
                "measured": {"cpu now": cpu, "cpu": better, "memory now": 31.2e6, "memory": 28.4e6}
                | {f"rate {alias}": 4e4 for alias in ALIASES},
                "expected": {"cpu": better, "cpu before": cpu, "memory": 28.4e6, "memory before": 31.2e6}
                if change
                else {},
            }
            if change:
                tree, changes = phase, changes + 1
                pending.append(_outcome(number, t + 20, 4.3, 2.4 if changes == 1 else 4.6, changes == 1))
                number += 1
                yield {
                    "type": "decision",
                    "t": t + 0.4,
                    "id": number,
                    "kind": "migration",
                    "at": rows,
                    "slot": 0,
                    "what": f"{now} -> {next_} by moving state",
                    "why": "61,204 rows in 2 batches and 0.31 s, with a longest pause of 38 ms",
                    "measured": {"rows": 61204, "seconds": 0.31, "longest": 0.038, "bytes": 4.1e6},
                    "expected": {"rows": 58000, "seconds": 0.28, "longest": 0.035, "bytes": 3.9e6},
                }
        if second % 40 == 25:
            number += 1
            yield {
                "type": "decision",
                "t": t,
                "id": number,
                "kind": "move",
                "at": rows,
                "slot": 0,
                "what": f"{2 + number % 5} groups move from slot 0 to slot 1, for memory",
                "why": "slot 0 holds 1.6 times as much as slot 1",
                "measured": {"groups": 4, "amount": 2.2e6},
                "expected": {"ratio after": 1.1},
            }
            pending.append(_outcome(number, t + 10, 0, 0, None))
        if second % 90 == 70:
            number += 1
            yield {
                "type": "decision",
                "t": t,
                "id": number,
                "kind": "spill",
                "at": rows,
                "slot": None,
                "what": f"6 groups of {groups} in memory leave it, with 2.1 MB",
                "why": "memory is full",
                "measured": {"groups": 6, "bytes": 2.1e6, "rows": 41000},
                "expected": {},
            }
        while pending and pending[0]["t"] <= t:
            yield pending.pop(0) | {"t": t}
        ended = end and second == seconds
        yield _sample(second, t, rows, out, late, state, speed, route, tree, phase, groups, drawn, ended)
    if end:
        summary = {"rows_in": rows, "rows_out": out, "seconds": seconds, "decisions": {"plan": changes}}
        summary |= {"peak_memory_bytes": 27_900_000}
        yield {"type": "end", "t": seconds + 0.5, "status": "done", "summary": summary, "error": None}


def _order(source: int, best: tuple[int, ...]) -> list[int]:
    return [other for other in best if other != source]


def _names(order: list[int]) -> str:
    return ", ".join(ALIASES[source] for source in order)


def _head(groups: int) -> Event:
    edges = [
        {"between": [a, a + 1], "text": f"{ALIASES[a]}.k = {ALIASES[a + 1]}.k", "kind": "equality"} for a in range(3)
    ]
    return {
        "type": "run",
        "version": 1,
        "t": 0,
        "began": "2026-11-18T20:00:00Z",
        "eddyline": "0.1.0",
        "engine": "local",
        "query": QUERY,
        "plan": "multi-way join of 4 sources\n\no: stream orders, RANGE 2 seconds\n  hash index on o.k",
        "settings": {"router": "auto", "plan": "auto", "balance": "auto", "memory": "200MB"},
        "sources": [
            {"alias": alias, "name": name, "kind": "stream", "window": "RANGE 2 seconds"}
            for alias, name in zip(ALIASES, NAMES, strict=True)
        ],
        "edges": edges,
        "slots": 2,
        "groups": groups,
        "pid": 4711,
    }


def _outcome(of: int, t: float, before: float, after: float, paid: bool | None) -> Event:
    if paid is None:
        what = "the slots' loads have come closer: 1.6 to 1 before, 1.1 to 1 now"
        return {"type": "outcome", "t": t, "of": of, "paid": None, "what": what, "measured": {"ratio": 1.1}}
    what = f"{before:.2g} us of CPU a row before, {after:.2g} after, over the same 5 s"
    measured = {"cpu us per row before": before, "cpu us per row": after}
    return {"type": "outcome", "t": t, "of": of, "paid": paid, "what": what, "measured": measured}


def _sample(
    second: int,
    t: float,
    rows: int,
    out: int,
    late: int,
    state: int,
    speed: int,
    route: list[list[int]],
    tree: int,
    phase: int,
    groups: int,
    drawn: random.Random,
    ended: bool,
) -> Event:
    watermark = _EPOCH + int(t * 1e6) - 400_000
    event: Event = {
        "type": "sample",
        "t": t,
        "rows_in": rows,
        "rows_out": out,
        "rows_late": late,
        "rows_dead": second // 50,
        "errors": 0,
        "state_rows": state,
        "memory_bytes": state * 66,
        "memory_limit": 200_000_000,
        "batches": second * 3,
        "batch_seconds": round(drawn.uniform(0.25, 0.4), 3),
        "watermark_us": watermark,
        "backlog_rows": drawn.randrange(5000),
        "streams": {
            name: {
                "rows": rows // 4,
                "late": late // 4,
                "dead": second // 200,
                "newest_us": watermark + 400_000 + 50_000 * i,
                "watermark_us": watermark + 50_000 * i,
                "ended": ended,
            }
            for i, name in enumerate(NAMES)
        },
        "routes": [_route(source, order, speed, drawn) for source, order in enumerate(route)],
        "steps": list(_steps(route, speed, drawn)),
        "packets": [
            {
                "at": at,
                "mean": drawn.uniform(400, 16000),
                "threshold": 2 ** drawn.randrange(9, 15),
                "occupancy": drawn.randrange(900),
                "packets": drawn.randrange(1, 20),
            }
            for at in (*ALIASES, "o p", "o s", "p a", "s a")
        ],
        "tree": TREES[tree],
        "slots": [
            {"slot": n, "rows": state // 2, "bytes": state * (30 + 6 * n), "busy": 0.6 + 0.1 * n} for n in range(2)
        ],
        "disk": {"groups": second // 90 * 3 % groups, "log_bytes": second * 80_000},
        "spill": {"left": second // 90, "rows": second * 100, "sweeps": 0, "results": 0},
    }
    if second % 5 == 1:
        event["groups"] = _groups(second, groups, drawn)
    return event


def _route(source: int, order: list[int], speed: int, drawn: random.Random) -> Event:
    spans = [sorted([source, *order[:n]]) for n in range(1, 4)]
    steps = [f"{ALIASES[to]} by {ALIASES[source]}.k = {ALIASES[to]}.k" for to in order]
    return {
        "source": ALIASES[source],
        "steps": steps,
        "spans": [[source], *spans[:-1]],
        "share": round(0.9 + drawn.uniform(0, 0.08), 3),
        "rows": speed // 4,
    }


def _steps(route: list[list[int]], speed: int, drawn: random.Random) -> Iterator[Mapping[str, Any]]:
    for source, order in enumerate(route):
        span, tuples = [source], speed // 4
        for place, to in enumerate(order):
            share = 0.004 if place == 0 else drawn.uniform(7, 11) if place == 1 else 0.35
            after = sorted([*span, to])
            yield {
                "at": " ".join(ALIASES[n] for n in span),
                "span": span,
                "to": after,
                "chosen": True,
                "step": f"{ALIASES[to]} by {ALIASES[source]}.k = {ALIASES[to]}.k",
                "tuples": tuples,
                "produced": int(tuples * share),
                "us": round(tuples * drawn.uniform(0.1, 2), 3),
            }
            if place == 0:
                other = order[1]
                yield {
                    "at": ALIASES[source],
                    "span": span,
                    "to": sorted([*span, other]),
                    "chosen": False,
                    "step": f"{ALIASES[other]} by {ALIASES[source]}.k = {ALIASES[other]}.k",
                    "tuples": tuples // 30,
                    "produced": tuples // 4,
                    "us": tuples / 30 * 0.4,
                }
            span, tuples = after, int(tuples * share) + 1


def _groups(second: int, groups: int, drawn: random.Random) -> Event:
    numbers = range(groups)
    sizes = [int(60_000 * (1 + math.sin(n * 1.7 + second / 60)) + drawn.randrange(9000)) for n in numbers]
    return {
        "slot": [n % 2 if n > second // 40 * 4 % groups else 1 for n in numbers],
        "group": list(numbers),
        "bytes": sizes,
        "rows": [size // 66 for size in sizes],
        "results": [round(size / 90 * (n % 7), 1) for n, size in enumerate(sizes)],
        "on_disk": [(n * 7) % groups < second // 90 * 3 for n in numbers],
    }
