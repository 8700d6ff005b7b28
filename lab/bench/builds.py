"""`bench builds`: rows that are built, and nobody probes.

One stream is joined with loaded tables: nothing probes its SteM, so it has no index, and its rows leave at the end of
the batch. With `--against CHECKOUT` it is measured beside the code of another checkout, by CPU time: in processes of
their own, in turns.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import eddyline
from eddyline.errors import InternalError
from lab.bench import Result
from lab.bench.against import OURS, PAIRS, RUNS, THEIRS, answer, side

ROWS, KEYS, BATCH, TABLES = 1_000_000, 20_000, 65_536, (1, 4)
"""Rows of the stream, rows of each table, rows in a batch, numbers of tables."""

PROGRAM = """
import gc, json, sys
from time import process_time
import numpy as np, pyarrow as pa
from eddyline.bound.bind import bind
from eddyline.cql.script import parse
from lab.batch_driver import BatchDriver
from eddyline.settings import Settings

tables, rows, keys, batch = json.loads(sys.argv[1])
random, names = np.random.default_rng(42), [f"t{n}" for n in range(tables)]
times = pa.array(np.arange(rows) * 100 + 1_700_000_000_000_000, pa.timestamp("us"))
stream = pa.record_batch(
    {"ts": times, **{f"k{name}": random.integers(0, keys, rows) for name in names}, "v": random.random(rows)}
)
table = pa.record_batch({"k": np.arange(keys), "x": np.arange(keys) / 3})
text = "CREATE STREAM s USING memory TIMESTAMP BY ts;"
text += "".join(f"CREATE TABLE {name} USING memory;" for name in names)
text += f"SELECT s.v, {', '.join(f'{n}.x AS x{n}' for n in names)} FROM s [RANGE 1 MINUTE], {', '.join(names)} "
text += f"WHERE {' AND '.join(f's.k{name} = {name}.k' for name in names)}"
query = bind(parse(text), lambda declared: stream.schema if declared.name == "s" else table.schema)

def run():
    engine = BatchDriver(query, Settings())
    for name in names:
        engine.load_table(name, table)
    gc.collect()
    begin, found = process_time(), 0
    for at in range(0, rows, batch):
        found += sum(some.num_rows for some in engine.batch([("s", stream.slice(at, batch))]).results)
    told = {"seconds": process_time() - begin, "results": found}
    told |= {"peak state, rows": engine.peak.rows, "peak state, bytes": engine.peak.bytes}
    return told | {"state held, rows": engine.held.rows, "state held, bytes": engine.held.bytes}

run()
print("ready", flush=True)
for _ in sys.stdin:
    print(json.dumps(run()), flush=True)
"""
"""The program of a side. It uses only what older checkouts have, too."""


def run(against: str | None = None) -> list[Result]:
    """Measure one stream; with `against`, also in another checkout."""
    return one_stream(against)


def one_stream(
    against: str | None = None, rows: int = ROWS, keys: int = KEYS, pairs: int = PAIRS, runs: int = RUNS
) -> list[Result]:
    """Measure one stream beside loaded tables; with `against`, also in another checkout."""
    sides = {OURS: Path(eddyline.__file__).parent.parent}
    if against is not None:
        sides[THEIRS] = Path(against, "src").resolve()
    results = []
    for tables in TABLES:
        case = f"one stream, {tables} table{'s' * (tables > 1)}"
        found = _measured(sides, [tables, rows, keys, BATCH], pairs, runs)
        for name, given in found.items():
            speed = rows / median(one["seconds"] for one in given)
            results.append(Result(case, f"{name}: rows per CPU second", speed, "1/s"))
            results += [Result(case, f"{name}: {what}", given[-1][what], "") for what in given[-1] if "state" in what]
        if THEIRS in found:
            ratios = [one["seconds"] / two["seconds"] for one, two in zip(found[OURS], found[THEIRS], strict=True)]
            results.append(Result(case, f"CPU time: {OURS} / {THEIRS}", median(ratios), ""))
    return results


def _measured(sides: dict[str, Path], given: list[int], pairs: int, runs: int) -> dict[str, list[dict[str, float]]]:
    """By side what each run found."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for _ in range(pairs):
        with ExitStack() as started:
            processes = {n: started.enter_context(side(code, json.dumps(given), PROGRAM)) for n, code in sides.items()}
            for number in range(runs):
                for name in sides if number % 2 == 0 else reversed(sides):
                    found[name].append(json.loads(answer(processes[name])))
    if len({one["results"] for some in found.values() for one in some}) != 1:
        raise InternalError("the sides disagree")
    return found
