"""The jobs of chaos.py: their input files, their scripts, and the check of their output.

Rows come out of order, and some rows of stream a come too late. Which rows are late depends on the cut into batches,
and so on every kill; but all late rows go to the late sink, and the result must be that of the other rows. So the check
is: used, late and dead rows together are the input; the sink equals DuckDB's result for the used rows; and no file is
left that the last commit does not name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import eddyline.testing.quiet_exit  # noqa: F401
from eddyline.bound.bind import bind
from eddyline.counts import Counts
from eddyline.cql.script import parse
from eddyline.protocol.home import checkpoint_at
from eddyline.testing.case import Batch, sql_type
from eddyline.testing.compare import difference
from eddyline.testing.oracle import Oracle
from lab.chaos.asked_database import METHODS, NAMED, AskedDatabase, rows_of
from lab.chaos.servers import Places, Servers
from lab.fuzz.outcome import counted

START = 1_767_225_600_000_000
SECOND = 1_000_000
COLUMNS = "(ts TIMESTAMP, id BIGINT, k BIGINT, j BIGINT, v BIGINT)"
SCHEMA = pa.schema([("ts", pa.timestamp("us")), *((name, pa.int64()) for name in ("id", "k", "j", "v"))])
NAMES = pa.schema([("j", pa.int64()), ("name", pa.string())])

QUERIES = {
    "join": (
        "parquet",
        """SELECT a.id AS a, b.id AS b, c.id AS c, a.v + c.v AS v
FROM a [RANGE 3 SECONDS] AS a, b [RANGE 3 SECONDS] AS b, c [RANGE 3 SECONDS] AS c WHERE a.k = b.k AND b.j = c.j""",
    ),
    "aggregate": (
        "csv",
        """SELECT window_end() AS at, a.j AS j, COUNT(*) AS n, SUM(b.v) AS s, MAX(a.v) AS m
FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS] AS a, b [RANGE 4 SECONDS SLIDE 2 SECONDS] AS b WHERE a.k = b.k GROUP BY a.j""",
    ),
    "rows": (
        "json",
        """SELECT a.id AS a, b.id AS b, t.name AS name
FROM a [ROWS 40] AS a, b [RANGE 2 SECONDS] AS b, t WHERE a.k = b.k AND b.j = t.j""",
    ),
}
"""The format of the sink and the query of each job, by name."""
ASKED = {
    "enriched": (
        "parquet",
        """SELECT a.id AS a, b.id AS b, u.name AS name
FROM a [RANGE 5 SECONDS] AS a, b [RANGE 5 SECONDS] AS b, u WHERE a.v = b.v AND a.v = u.j""",
    ),
    "counted": (
        "csv",
        """SELECT window_end() AS at, u.name AS name, COUNT(*) AS n, SUM(b.id) AS s
FROM a [RANGE 4 SECONDS SLIDE 2 SECONDS] AS a, b [RANGE 4 SECONDS SLIDE 2 SECONDS] AS b, u
WHERE a.v = b.v AND b.v = u.j GROUP BY u.name""",
    ),
    "two tables": (
        "json",
        """SELECT a.id AS a, b.id AS b, u.name AS name, w.name AS other
FROM a [RANGE 5 SECONDS] AS a, b [RANGE 5 SECONDS] AS b, u, w WHERE a.v = b.v AND a.v = u.j AND b.k = w.j""",
    ),
}
"""Those with tables that are asked. All tuples that ask table u for a key are in one slot."""
TABLES = {"t": NAMES, **dict.fromkeys(METHODS, NAMED)}


@dataclass(frozen=True)
class ChaosJob:
    """A job over files in a folder; `rows` has all rows of each stream and table, in the order of arrival."""

    name: str
    folder: Path
    script: str
    rows: dict[str, pa.Table]
    places: Places | None = None
    """Where streams and results of a job between servers are."""

    def format(self, sink: str) -> str:
        """The format of the files that are compared, by the folder of a sink."""
        if self.places is not None:
            return self.places.format(sink)
        return {"out": (QUERIES | ASKED)[self.name][0], "late": "json", "dead": "csv"}[sink]

    @property
    def schema(self) -> pa.Schema:
        """The columns of the results."""
        return bind(parse(self.script), lambda declaration: _schema(declaration.name)).schema

    @property
    def checkpoint(self) -> Path:
        """The folder of the job's checkpoint."""
        return self.folder / "checkpoint"

    @property
    def sink(self) -> Path:
        """The folder of the job's results."""
        return self.folder / "out"

    @property
    def faults(self) -> Path:
        """The folder of planned faults (lab/chaos/strikes.py)."""
        return self.folder / "faults"

    @property
    def arenas(self) -> Path:
        """The folder in which runs on Spark make their folders of arenas."""
        return self.folder / "arenas"


def make_job(
    name: str,
    folder: Path,
    seed: int,
    files: int = 24,
    rows_per_file: int = 150,
    database: AskedDatabase | None = None,
    servers: tuple[Servers, int] | None = None,
) -> ChaosJob:
    """Writes the files of a job; `database` has the tables of a job that asks. With `servers` and its number, streams
    and results are there (lab/chaos/servers.py)."""
    rng = random.Random(seed)
    rows = {stream: _stream(rng, files * rows_per_file, late=stream == "a") for stream in ("a", "b", "c")}
    for stream, table in rows.items():
        (folder / stream).mkdir(parents=True)
        for number in range(files):
            part = table.slice(number * rows_per_file, rows_per_file)
            pq.write_table(part, folder / stream / f"{number:05}.parquet")
    rows["t"] = pa.table({"j": list(range(0, 100, 2)), "name": [f"name {j}" for j in range(0, 100, 2)]}, schema=NAMES)
    (folder / "t").mkdir()
    pq.write_table(rows["t"], folder / "t" / "t.parquet")
    rows |= {table: rows_of(table) for table in METHODS if database is not None}
    places = None if servers is None else servers[0].places(servers[1], rows, name in ASKED)
    if places is not None and places.rows is not None:
        rows["u"] = places.rows
    return ChaosJob(name, folder, _script(name, folder, database, places), rows, places)


def _stream(rng: random.Random, count: int, late: bool) -> pa.Table:
    """Rows in the order of arrival: each up to a second after its event time, late rows up to eleven seconds."""
    rows = []
    for number in range(count):
        time = START + number * SECOND // 60 + rng.randrange(SECOND // 10)
        delay = rng.random() * SECOND + (rng.random() * 10 * SECOND if late and rng.random() < 0.03 else 0)
        dead = late and rng.random() < 0.01
        rows.append((time + delay, None if dead else time, number, rng.randrange(100), rng.randrange(100)))
    rows.sort(key=lambda row: (row[0], row[2]))
    columns = [[row[place] for row in rows] for place in range(1, 5)]
    return pa.table([*columns, [rng.randrange(1000) for _ in rows]], schema=SCHEMA)


def _script(name: str, folder: Path, database: AskedDatabase | None, places: Places | None) -> str:
    format_, query = (QUERIES | ASKED)[name]
    sinks = [("result", format_, "out"), ("late", "json", "late"), ("dead", "csv", "dead")]
    lines = [
        f"CREATE SINK {s} USING {f} OPTIONS (path '{folder / path}');"
        if places is None
        else f"CREATE SINK {s} {places.sink(path, folder)};"
        for s, f, path in sinks
    ]
    for stream in ("a", "b", "c"):
        spare = " LATE INTO late DEAD INTO dead" if stream == "a" else ""
        files = f"USING parquet OPTIONS (path '{folder / stream}')"
        source = files if places is None else f"{COLUMNS} {places.columns[stream]}"
        lines.append(f"CREATE STREAM {stream} {source} TIMESTAMP BY ts LATENESS 1100 MILLISECONDS{spare};")
    lines.append(f"CREATE TABLE t USING parquet OPTIONS (path '{folder / 't'}');")
    if places is not None and places.table:
        lines.append(f"CREATE TABLE u (j BIGINT, name VARCHAR) USING {places.table} INDEX ON (j);")
    lines += [] if database is None else database.declarations([t for t in METHODS if f", {t}" in query])
    return "\n".join([*lines, f"INSERT INTO result {query};"])


def verify(job: ChaosJob, on_spark: bool) -> Iterator[str]:
    """The differences between a finished job's output and the expected one."""
    if job.places is not None:
        yield from job.places.dump(job.folder, job.schema)
    yield from _wrong_rows(job)
    yield from left_behind(job)
    if on_spark and (left := sorted(p.name for p in job.arenas.glob("*"))):
        yield f"arenas are left: {left}"


def _wrong_rows(job: ChaosJob) -> Iterator[str]:
    script = parse(job.script)
    late = _ids(_read(job.folder / "late", job.format("late"), SCHEMA))
    texts = pa.schema([*((n, pa.string()) for n in (*SCHEMA.names, "reason"))])
    dead = _ids(_read(job.folder / "dead", job.format("dead"), texts))
    a = job.rows["a"]
    really_dead = set(a.filter(a.column("ts").is_null()).column("id").to_pylist())
    if sorted(dead) != sorted(really_dead):
        yield f"dead rows: {len(dead)} in place of {len(really_dead)}"
    if len(late) != len(set(late)) or not set(late) <= set(a.column("id").to_pylist()) - really_dead:
        yield "late rows: some twice, or some that never came"
    used = {s: job.rows[s] for s in ("a", "b", "c")}
    used["a"] = a.filter(pc.invert(pc.is_in(a.column("id"), pa.array([*late, *dead], pa.int64()))))
    batch = Batch(tuple((s, rows.combine_chunks().to_batches()[0]) for s, rows in used.items()))
    tables = {name: rows.to_batches()[0] for name, rows in job.rows.items() if name in TABLES}
    streams = {d.name for d in script.declarations if any(d.name == s.stream for s in script.sources)}
    expected = Oracle().expected(script, _schema, [batch], tables)
    got = _read(job.sink, job.format("out"), job.schema)
    different = difference(got, expected.table, expected.scale)
    if different is not None:
        yield f"the sink differs: {different}"
    commit = checkpoint_at(str(job.checkpoint)).last()
    counts = counted(Counts() if commit is None else commit.counts)
    read = sum(job.rows[s].num_rows for s in streams if s not in TABLES)
    wanted = {"rows_in": read, "rows_late": len(late), "rows_dead": len(dead), "rows_out": expected.table.num_rows}
    wanted["rows_used"] = read - len(late) - len(dead)
    if counts != wanted:
        yield f"counts {counts} in place of {wanted}"


def _schema(name: str) -> pa.Schema:
    return TABLES.get(name, SCHEMA)


def left_behind(job: ChaosJob) -> Iterator[str]:
    """Files that a finished job should not have."""
    commit = checkpoint_at(str(job.checkpoint)).last()
    if commit is None or not commit.finished:
        yield "the job is not finished"
        return
    number = f"{commit.batch:08}"
    wanted = {"checkpoint.json", f"commits/{number}", f"decided/{number}", *(f.name for f in commit.log), *commit.small}
    there = {str(p.relative_to(job.checkpoint)) for p in job.checkpoint.rglob("*") if p.is_file()}
    there = {name for name in there if not name.startswith(("spark/", "files/"))}
    if there - wanted:
        yield f"files in the checkpoint that no commit names: {sorted(there - wanted)[:5]}"
    if wanted - there - {f"decided/{number}"}:
        yield f"files are missing in the checkpoint: {sorted(wanted - there)[:5]}"
    for sink in ("out", "late", "dead"):
        names = [str(p.relative_to(job.folder / sink)) for p in (job.folder / sink).rglob("*")]
        odd = [n for n in names if not n.startswith("part-") or "/" in n]
        if odd:
            yield f"files in sink {sink} that should not be there: {odd[:5]}"
    temporary = [p.name for p in (job.folder / "tmp").glob("eddyline-*")]
    if temporary:
        yield f"temporary files: {temporary[:5]}"


def _read(sink: Path, format_: str, schema: pa.Schema) -> pa.Table:
    """All rows of a sink, read by DuckDB."""
    files = sorted(str(p) for p in sink.glob(f"part-*.{format_}"))
    if not files:
        return schema.empty_table()
    columns = ", ".join(f"'{f.name}': '{sql_type(f.type)}'" for f in schema)
    read: dict[str, Callable[[], str]] = {
        "parquet": lambda: f"read_parquet({files})",
        "csv": lambda: f"read_csv({files}, header=true, columns={{{columns}}})",
        "json": lambda: f"read_json({files}, format='newline_delimited', columns={{{columns}}})",
    }
    with duckdb.connect() as database:
        table: pa.Table = database.sql(f"SELECT * FROM {read[format_]()}").to_arrow_table()
        return table


def _ids(rows: pa.Table) -> list[int]:
    return [int(i) for i in rows.column("id").to_pylist()]
