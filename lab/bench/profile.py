"""`bench profile`: where the time of the three-way join of `bench core` goes, by function, own time only."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

from lab.bench import Result
from lab.bench.core import BATCH, THREE_WAY
from lab.bench.streams import query_over, run_engine, streams

SHOWN = 14


def run() -> list[Result]:
    """The functions that take most of the time, in percent of the whole."""
    data = streams({"a": ["a"], "b": ["a", "b"], "c": ["b"]}, rows=1_000_000, domain=100_000, every=100)
    query = query_over(data, THREE_WAY)
    run_engine(query, {name: batch.slice(0, 50_000) for name, batch in data.items()}, BATCH)
    profile = cProfile.Profile()
    profile.runcall(run_engine, query, data, BATCH)
    entries = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
    own = sorted(((times[2], _name(*where)) for where, times in entries), reverse=True)
    whole = sum(seconds for seconds, _ in own)
    shown = [Result("three-way", name, 100 * seconds / whole, "%") for seconds, name in own[:SHOWN]]
    rest = sum(seconds for seconds, _ in own[SHOWN:])
    return [*shown, Result("three-way", f"{len(own) - SHOWN} others", 100 * rest / whole, "%")]


def _name(file: str, line: int, function: str) -> str:
    if file == "~":
        return function.strip("<>")
    path = Path(file)
    return f"{path.parent.name}/{path.stem}.{function}"
