"""The peers take turns on the queries: every cell is a process of its own, and its results are compared.

The results of a cell are files. Their number of rows and the sum of the hashes of the rows, which does not depend on
the order, must be those of DuckDB. A cell that reaches the time limit says how many rows were done by then, and does
not run again.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import statistics
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from lab.peers.environments import NoEnvironment, python_of
from lab.peers.process import Watched, watched
from lab.peers.queries import PeerQuery
from lab.peers.sql import flink_statements, name_of

PEERS = (
    "eddyline",
    "eddyline on spark",
    "spark",
    "spark rocksdb",
    "flink",
    "flink multi-way",
    "pathway",
    "duckdb",
)
OURS, ON_SPARK, BATCH = "eddyline", "eddyline on spark", "duckdb"
FILES = 8
"""Parquet files of each stream. Text files are one for each stream, so that Flink reads a stream in order."""
_TESTS = re.compile(r"(\w+) (=|<) (\d+)$|(\w+) IN \((.*)\)$")
_BETWEEN = re.compile(r"\{(\w+)\.(\w+)\} (=|<|>=|<=) \{(\w+)\.(\w+)\}$")

_log = logging.getLogger(__name__)
Checksum = tuple[int, int]
"""The number of result rows, and the sum of their hashes."""


@dataclass
class Cell:
    """A peer on a query, over all rounds. `why` says why there is no result, or what is wrong with it."""

    query: str
    peer: str
    rows: int
    runs: list[Watched] = field(default_factory=list)
    results: Checksum | None = None
    why: str = ""

    def steady(self) -> float:
        """Rows a second without start-up."""
        rates: list[float] = [run.told["rows"] / max(run.told["seconds"], 1e-9) for run in self.runs]
        return statistics.median(rates)

    def with_start(self) -> float:
        """Rows a second of the whole process."""
        return self.rows / statistics.median(run.wall for run in self.runs)

    def cpu(self) -> float:
        """CPU seconds of the process tree for a million rows."""
        return statistics.median(run.cpu for run in self.runs) / self.rows * 1e6

    def memory(self) -> float:
        """Peak memory of the process tree in bytes."""
        return statistics.median(run.memory for run in self.runs)


def compare(query: PeerQuery, peers: tuple[str, ...], rows: int, rounds: int, limit: float) -> list[Cell]:
    """All cells of one query."""
    folder = tempfile.mkdtemp(prefix="eddyline-peers-")
    try:
        tables = query.make(rows)
        write(tables, folder)
        total = sum(table.num_rows for table in tables.values())
        cells = [Cell(query.name, peer, total) for peer in peers]
        for _ in range(rounds):
            for cell in cells:
                if not cell.why:
                    _run(cell, query, tables, folder, limit)
        _judge(cells)
        return cells
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write(tables: Mapping[str, pa.RecordBatch], folder: str) -> None:
    """Write the streams as parquet and as text. Spark reads files in the order of their modification times."""
    for name, table in tables.items():
        for kind in ("parquet", "csv"):
            Path(folder, kind, name).mkdir(parents=True)
        size = -(-table.num_rows // FILES)
        for number in range(FILES):
            path = Path(folder, "parquet", name, f"{number:04}.parquet")
            pq.write_table(pa.Table.from_batches([table.slice(number * size, size)]), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
        others = [n for n in table.schema.names if n not in ("ts", "t")]
        millis = pa.array(table.column("ts").cast(pa.int64()).to_numpy() // 1000)
        text = pa.record_batch({"t": millis, **{n: table.column(n) for n in others}})
        options = pc_csv.WriteOptions(include_header=False, quoting_style="none")
        with open(Path(folder, "csv", name, "0.csv"), "wb") as file:
            pc_csv.write_csv(text, file, options)
        with open(Path(folder, "csv", name, "0.csv"), "rb") as file, open(f"{folder}/{name}.head.csv", "wb") as headed:
            headed.write((",".join(name_of(name, column) for column in text.schema.names) + "\n").encode())
            shutil.copyfileobj(file, headed)
        Path(folder, "headed", name).mkdir(parents=True)
        os.replace(f"{folder}/{name}.head.csv", Path(folder, "headed", name, "0.csv"))


def _run(cell: Cell, query: PeerQuery, tables: Mapping[str, pa.RecordBatch], folder: str, limit: float) -> None:
    out = f"{folder}/out"
    shutil.rmtree(out, ignore_errors=True)
    os.mkdir(out)
    try:
        command = _command(cell, query, tables, folder, out)
    except (NoEnvironment, Unsaid) as error:
        cell.why = f"left out: {error}"
        _log.info("%s, %s: %s", cell.query, cell.peer, cell.why)
        return
    run = watched(command, limit, {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} if command[1] == "-m" else {})
    if run.timed_out:
        done = run.told.get("done", 0)
        told = f", {done:,} of {cell.rows:,} rows done" if done else ""
        cell.why = f"{limit:.0f} s limit reached{told}"
    elif run.error:
        cell.why = f"failed: {run.error[:300]}"
    else:
        cell.runs.append(run)
        found = checksum(query, tables, out)
        if cell.results not in (None, found):
            cell.why = f"results differ between rounds: {found} and {cell.results}"
        cell.results = found
        _log.info(
            "%s, %s: %s rows/s, %s with start-up, %.1f CPU s, %s results",
            cell.query, cell.peer, f"{cell.steady():,.0f}", f"{cell.with_start():,.0f}", run.cpu, f"{found[0]:,}",
        )  # fmt: skip
    if cell.why:
        _log.info("%s, %s: %s", cell.query, cell.peer, cell.why)


class Unsaid(Exception):
    """A peer cannot express a query; the message says why."""


def _command(cell: Cell, query: PeerQuery, tables: Mapping[str, pa.RecordBatch], folder: str, out: str) -> list[str]:
    task: dict[str, Any] = {"peer": cell.peer, "query": query.name, "out": out, "rows": cell.rows}
    if cell.peer.startswith("flink"):
        multi = cell.peer == "flink multi-way"
        settings = {"pipeline.object-reuse": "true"}
        settings |= {"table.optimizer.multi-join.enabled": "true"} if multi else {}
        task |= {"settings": settings, "statements": flink_statements(query, tables, f"{folder}/csv", out, multi)}
        return [python_of("flink"), str(Path(__file__).with_name("flink_cell.py")), json.dumps(task)]
    if cell.peer == "pathway":
        python = python_of("pathway")
        task |= {"folder": f"{folder}/headed", **pathway_task(query, tables)}
        return [python, str(Path(__file__).with_name("pathway_cell.py")), json.dumps(task)]
    return [sys.executable, "-m", "lab.peers.cell", json.dumps({**task, "folder": f"{folder}/parquet"})]


def pathway_task(query: PeerQuery, tables: Mapping[str, pa.RecordBatch]) -> dict[str, Any]:
    """The query as pathway_cell.py takes it."""
    streams = {}
    for name in query.streams:
        fields = [f for f in tables[name].schema if f.name not in ("ts", "t")]
        streams[name] = {"t": "int", **{f.name: "str" if f.type == pa.string() else "int" for f in fields}}
    filters: dict[str, list[tuple[str, str, Any]]] = {}
    for stream, text in query.filters:
        found = _TESTS.match(text)
        if found is None:
            raise Unsaid(f"'{text}' has no translation")
        test = (found[1], found[2], int(found[3])) if found[1] else (
            found[4], "in", [word.strip(" '") for word in found[5].split(",")]
        )  # fmt: skip
        filters.setdefault(stream, []).append(test)
    conditions = []
    for text in query.conditions:
        found = _BETWEEN.match(text)
        if found is None:
            raise Unsaid(f"'{text}' has no translation")
        conditions.append((name_of(found[1], found[2]), found[3], name_of(found[4], found[5])))
    return {
        "streams": streams, "first": query.first, "window": query.window, "filters": filters, "conditions": conditions,
        "joins": [(j.stream, j.key, j.partner, j.partner_key) for j in query.joins],
        "outputs": [name_of(*output) for output in query.outputs],
    }  # fmt: skip


def checksum(query: PeerQuery, tables: Mapping[str, pa.RecordBatch], out: str) -> Checksum:
    """The checksum of the result files in a folder, parquet or text."""
    names = [name_of(*output) for output in query.outputs]
    paths = [p for p in Path(out).rglob("*") if p.is_file() and not p.name.endswith(".crc") and p.stat().st_size]
    parquet = [str(p) for p in paths if p.suffix == ".parquet"]
    texts = [str(p) for p in paths if p.suffix != ".parquet" and not p.name.startswith("_SUCCESS")]
    texts = [p for p in texts if "_spark_metadata" not in p]
    if parquet:
        source = f"read_parquet({parquet})"
    elif texts:
        kinds = {name_of(s, c): "VARCHAR" if tables[s].schema.field(c).type == pa.string() else "BIGINT"
                 for s, c in query.outputs}  # fmt: skip
        headed = texts[0].endswith("/0.csv")
        kinds |= {"time": "BIGINT", "diff": "BIGINT"} if headed else {}
        source = f"read_csv({texts}, header={headed}, columns={kinds}, delim=',', nullstr='NULL')"  # '' is a text
    else:
        return 0, 0
    hashed = ", ".join(f"CAST({name} AS VARCHAR)" for name in names)
    total = f"CAST(SUM(CAST(hash({hashed}) AS HUGEINT)) % 1000000007 AS BIGINT)"
    found = duckdb.sql(f"SELECT COUNT(*), {total} FROM {source}")
    count, sum_ = found.fetchall()[0]
    return count, sum_ or 0


def _judge(cells: list[Cell]) -> None:
    """Results must be those of DuckDB; without it, those of the first peer."""
    done = sorted((c for c in cells if c.results is not None), key=lambda c: c.peer != BATCH)
    truth = done[0] if done else None
    for cell in cells:
        if truth is not None and cell.results not in (None, truth.results):
            cell.why = f"other results than {truth.peer}: {cell.results} and not {truth.results}"
            _log.info("%s, %s: %s", cell.query, cell.peer, cell.why)
