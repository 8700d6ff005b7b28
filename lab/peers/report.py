"""The cells of `bench peers` as a CSV file and a chart."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from lab.peers.cells import PEERS, Cell

COLUMNS = ("query", "peer", "rows", "steady_rows_per_s", "rows_per_s_with_start", "cpu_s_per_million_rows",
           "peak_memory_mb", "results", "note")  # fmt: skip


def write(cells: Sequence[Cell], folder: Path) -> None:
    """Write peers.csv, and peers.png if matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "peers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(row(cell) for cell in cells)
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    queries = list(dict.fromkeys(cell.query for cell in cells))
    figure = Figure(figsize=(2 + 1.1 * max(4, len(queries)), 6.5), dpi=90, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for number, peer in enumerate(PEERS):
        done = [cell for cell in cells if cell.peer == peer and cell.runs and not cell.why]
        at = [queries.index(cell.query) - 0.4 + (number + 0.5) * 0.8 / len(PEERS) for cell in done]
        above.bar(at, [cell.steady() for cell in done], 0.8 / len(PEERS), label=peer)
        below.bar(at, [cell.cpu() for cell in done], 0.8 / len(PEERS))
    done = [cell for cell in cells if cell.runs and not cell.why]
    for axes, title in ((above, "rows a second, without start-up"), (below, "CPU seconds for a million rows")):
        axes.set_yscale("log" if done else "linear")
        axes.set_title(title, fontsize="medium")
        axes.grid(axis="y", alpha=0.3)
    below.set_xticks(range(len(queries)), queries, rotation=30, ha="right", fontsize="small")
    figure.legend(loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(folder / "peers.png")


def row(cell: Cell) -> tuple[str | int | float, ...]:
    """A row of the CSV file; figures are empty where a cell did not end."""
    results = "" if cell.results is None else cell.results[0]
    if not cell.runs or cell.why:
        return cell.query, cell.peer, cell.rows, "", "", "", "", results, cell.why
    note = str(cell.runs[-1].told.get("note", ""))
    figures = round(cell.steady()), round(cell.with_start()), round(cell.cpu(), 3), round(cell.memory() / 1e6)
    return cell.query, cell.peer, cell.rows, *figures, results, note
