"""`bench nexmark`: events a second that one core makes of `USING nexmark`, all columns of all three kinds.

The bar is for all kinds together, since a benchmark with Nexmark reads them together. The result is the least CPU time
of a few rounds, because other work of the machine can only add to it.
"""

from __future__ import annotations

import time

from eddyline.cql.declaration import Declaration
from eddyline.cql.places import Place
from eddyline.runtime.formats import open_source
from eddyline.runtime.sources.nexmark.settings import KINDS
from eddyline.runtime.sources.source import Wanted
from lab.bench import Result

EVENTS, ROUNDS = 5_000_000, 4
BAR = 5e6


def run() -> list[Result]:
    """Measure; the first round does not count."""
    best = dict.fromkeys(KINDS, float("inf"))
    rows = dict.fromkeys(KINDS, 0)
    for number in range(ROUNDS + 1):
        for kind in KINDS:
            options = {"kind": kind, "events": str(EVENTS)}
            declared = Declaration("STREAM", kind, None, "nexmark", options, "dateTime", 0, None, None, Place(1, 1))
            source = open_source(declared, 0)
            wanted = Wanted.of(source.schema, source.schema.names, True)
            begin = time.process_time()
            rows[kind] = sum(chunk.rows.num_rows for chunk in source.read(wanted))
            if number:
                best[kind] = min(best[kind], time.process_time() - begin)
    rate = EVENTS / sum(best.values())
    each = [Result(f"{kind}s", "rows per CPU second", rows[kind] / best[kind], "rows/s") for kind in KINDS]
    return [*each, Result("all kinds, all columns", "events per CPU second", rate, "events/s", BAR, rate >= BAR)]
