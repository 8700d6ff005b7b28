"""`bench peers`: joins by Eddyline, by Spark's own joins, by Flink, by Pathway, and by DuckDB as one batch query.

One machine, one run, the same rows, each side in its own best setting (lab/peers.md says which), each in a process of
its own. The sides take turns, and their results are compared. A chart and a table go to the folder `peers-out`.
"""

from __future__ import annotations

from pathlib import Path

from eddyline.cql.names import did_you_mean
from eddyline.errors import SettingError
from lab.bench import Result
from lab.peers.cells import BATCH, ON_SPARK, OURS, PEERS, Cell, compare
from lab.peers.queries import QUERIES
from lab.peers.report import write

ROWS, QUICK_ROWS = 1_500_000, 150_000
ROUNDS, LIMIT, QUICK_LIMIT = 2, 180.0, 90.0


def run(
    query: str | None = None,
    peer: str | None = None,
    rows: int | None = None,
    rounds: int | None = None,
    quick: bool = False,
    out: str = "peers-out",
) -> list[Result]:
    """Measure all queries and peers, or those that are named. `rows` are about those of all streams of a query."""
    queries, peers = _chosen("query", query, tuple(QUERIES)), _chosen("peer", peer, PEERS)
    size, limit = (QUICK_ROWS, QUICK_LIMIT) if quick else (ROWS, LIMIT)
    cells = []
    for name in queries:
        cells += compare(QUERIES[name], peers, rows or size, rounds or (1 if quick else ROUNDS), limit)
        write(cells, Path(out))
    return [result for cell in cells for result in results(cell, cells)]


def _chosen(what: str, names: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    """All of the known names, or those in a text with commas between them."""
    chosen = known if names is None else tuple(name.strip() for name in names.split(","))
    for name in chosen:
        if name not in known:
            raise SettingError(f"--{what} {name}: there is {', '.join(known)}{did_you_mean(name, known)}")
    return chosen


def results(cell: Cell, cells: list[Cell]) -> list[Result]:
    """The results of a cell. Its bar, for a stream peer: Eddyline is ahead, in rows a second and in CPU time."""
    case = f"{cell.query}: {cell.peer}"
    if cell.why:
        wrong = cell.why.startswith(("other", "results differ"))
        return [Result(f"{case}: {cell.why}", "done", 0.0, "", ok=False if wrong else None)]
    found = [
        Result(case, "steady", cell.steady(), "rows/s"),
        Result(case, "with start-up", cell.with_start(), "rows/s"),
        Result(case, "CPU time", cell.cpu(), "s/M rows"),
        Result(case, "peak memory", cell.memory() / 1e6, "MB"),
    ]
    if cell.peer in (OURS, ON_SPARK, BATCH):
        return found
    ours = next((c for c in cells if (c.query, c.peer) == (cell.query, against(cell.peer)) and not c.why), None)
    if ours is None:
        return found
    faster, cheaper = ours.steady() / cell.steady(), cell.cpu() / ours.cpu()
    return [
        *found,
        Result(case, f"{ours.peer} is so many times as fast", faster, "", 1.0, faster >= 1),
        Result(case, f"its CPU time / that of {ours.peer}", cheaper, "", 1.0, cheaper >= 1),
    ]


def against(peer: str) -> str:
    """Which Eddyline a stream peer is compared with: on Spark for Spark's own joins, else the local engine."""
    return ON_SPARK if peer.startswith("spark") else OURS
