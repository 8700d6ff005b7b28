"""How old rows are when a sink gets them, of a generator at a steady rate, in this checkout and in another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import eddyline
from eddyline.errors import SettingError
from lab.bench import Result

RATES = (10_000, 300_000)
"""Rows a second. A batch of 65,536 rows is full long before `batch_seconds` at the second."""
BAR = 1.1
"""The most beside the other checkout; the first rate decides."""

SIDE = """
import json, sys, time
import numpy as np, pyarrow as pa
import eddyline as el

rate, seconds, each = json.loads(sys.argv[1]), 8.0, 0.02
ages, n = [], int(rate * each)

def rows():
    begin = time.time()
    for number in range(int(seconds / each)):
        time.sleep(max(0.0, begin + number * each - time.time()))
        times = np.full(n, int(time.time() * 1e6)) + np.arange(n)
        yield pa.record_batch({"ts": pa.array(times, pa.timestamp("us")), "k": np.arange(n)})

def sink(batch):
    now = time.time() * 1e6
    ages.append(now - batch.column("ts").cast(pa.int64()).to_numpy().mean())

schema = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
source = el.stream(rows(), schema=schema, time="ts")
el.query("SELECT s.ts, s.k FROM s WHERE s.k % 100 = 0", streams={"s": source}).start(sink=sink).wait()
print(json.dumps(float(np.median(ages)) / 1000))
"""
"""The program of a side; it prints milliseconds."""


def latency(checkout: str, rounds: int) -> list[Result]:
    """Compare both. SettingError if the code at `checkout` cannot run it."""
    sides = {
        "this checkout": Path(eddyline.__file__).parent.parent,
        "the other checkout": Path(checkout, "src").resolve(),
    }
    results = []
    for rate in RATES:
        ages: dict[str, list[float]] = {name: [] for name in sides}
        for number in range(rounds):
            for name, code in sides.items() if number % 2 == 0 else reversed(list(sides.items())):
                command = [sys.executable, "-P", "-c", SIDE, json.dumps(rate)]
                done = subprocess.run(
                    command, env=os.environ | {"PYTHONPATH": str(code)}, capture_output=True, text=True
                )
                if done.returncode:
                    raise SettingError(f"the code in {code} cannot run it: {done.stderr[-300:]}")
                ages[name].append(json.loads(done.stdout))
        mine, other = (median(some) for some in ages.values())
        case, bar = f"{rate:,} rows a second", BAR if rate == RATES[0] else None
        results += [Result(case, f"latency, {name}", median(some), "ms") for name, some in ages.items()]
        ok = None if bar is None else mine / other <= bar
        results.append(Result(case, "latency: this checkout / the other", mine / other, "", bar, ok))
    return results
