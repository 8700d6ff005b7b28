"""Random cases on real Spark: the results must be equal with any number of slots, on the local engine and by the
oracle.

    python -m lab.fuzz.spark_cases --cases 300 --seed 1 [--only 12]

The rows of a case become parquet files, one for each stream and batch, and Spark's source decides which files a batch
reads. The cut into batches decides which rows are late, so no row may be late: where a case has late rows, its streams
get a lateness as long as the streams. Then the results and the counts depend on the rows alone. Nothing is wound back
here. Left out are results of a type that parquet cannot hold (INTERVAL), timestamps in seconds (files have
milliseconds) and `eager`, a tuning, which tasks of Spark do not get.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.runtime.running.job import prepare
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import Settings
from eddyline.testing.case import Batch, Case
from eddyline.testing.lateness import micros
from eddyline.testing.oracle import Expected, Oracle
from lab import SHORT_LIVED
from lab.fuzz.generate import generate
from lab.fuzz.main import case_seed
from lab.fuzz.run import CaseOutcome, bound, expected_of, run, wrong
from lab.ledger import entered, stoppable

SLOTS = (1, 2, 3)
AT_ONCE = 2
"""The number of jobs that run at the same time: a small job spends much of its time waiting for processes to start."""
BATCHES = 2
"""The approximate number of batches of a case: each batch on Spark has a fixed cost of some tenths of a second."""
MODULES = ("lab.fuzz.fuzz_functions",)
_COUNTS = ("rows_in", "rows_used", "rows_late", "rows_dead", "rows_out")


def in_files(case: Case) -> Case:
    """The case with types that files can hold, and without late rows for any cut into batches."""
    long = _span(case) if "late rows" in case.features else 0
    streams = tuple(
        replace(s, schema=_as_in_a_file(s.schema), lateness=max(s.lateness, long) if s.time else 0)
        for s in case.streams
    )
    schemas = {s.name: s.schema for s in streams}
    batches = tuple(Batch(tuple((name, rows.cast(schemas[name])) for name, rows in b.rows)) for b in case.batches)
    tables = {name: rows.cast(schemas[name]) for name, rows in case.tables.items()}
    not_here = "durable", "eager", "migrate", "slots"
    settings = {name: value for name, value in case.settings.items() if name not in not_here}
    return replace(case, streams=streams, batches=batches, tables=tables, settings=settings)


def _span(case: Case) -> int:
    """The time between the first row and the last."""
    times = {s.name: s.time for s in case.streams}
    found = [micros(rows.column(times[name])).cast(pa.int64()) for batch in case.batches for name, rows in batch.rows]
    ends = [pc.min_max(of_rows).as_py() for of_rows in found if of_rows.null_count < len(of_rows)]
    return max((e["max"] for e in ends), default=0) - min((e["min"] for e in ends), default=0)


def _as_in_a_file(schema: pa.Schema) -> pa.Schema:
    in_seconds = {pa.timestamp("s", zone): pa.timestamp("ms", zone) for zone in (None, "UTC")}
    return pa.schema([pa.field(f.name, in_seconds.get(f.type, f.type)) for f in schema])


def write(case: Case, folder: Path) -> str:
    """Writes the rows of a case to files; returns the script that reads them."""
    for stream in case.streams:
        by_batch = [[rows for name, rows in batch.rows if name == stream.name] for batch in case.batches]
        by_batch += [[table] for name, table in case.tables.items() if name == stream.name]
        (folder / stream.name).mkdir(parents=True)
        for number, rows in enumerate([rows for rows in by_batch if rows] or [[]]):
            table = pa.Table.from_batches(rows, stream.schema).unify_dictionaries().combine_chunks()
            pq.write_table(table, folder / stream.name / f"{number:05}.parquet")
    declared = [
        s.text.replace("USING memory", f"USING parquet OPTIONS (path '{folder / s.name}')") for s in case.streams
    ]
    return "\n".join([*declared, case.select.text])


def holds(query: BoundQuery) -> bool:
    """Whether parquet can hold the results of a query."""
    return not any(pa.types.is_interval(field.type) for field in query.schema)


def run_on_spark(case: Case, script: str, slots: int, spark: Any) -> CaseOutcome:
    """Run a case that was written to files in a Spark session."""
    from eddyline.spark.runner import SparkRunner

    found: list[pa.RecordBatch] = []
    rows = max(1, case.row_count // BATCHES)
    settings = Settings(**{**case.settings, "slots": slots, "batch_rows": rows})  # type: ignore[arg-type]
    job = prepare(script, sink=CallbackSink(found.append), out=io.StringIO())
    summary = SparkRunner(job, settings, spark, modules=MODULES).run()
    counts = {name: getattr(summary, name) for name in _COUNTS}
    counts |= {"late": summary.rows_late, "dead": summary.rows_dead, "held_back": 0}
    return CaseOutcome(pa.Table.from_batches(found, job.query.schema), counts)


@dataclass
class SparkReport:
    """The results of a run."""

    cases: int = 0
    drawn: int = 0
    """The number of the last case that was drawn, run or left out, and one more."""
    left_out: int = 0
    empty: int = 0
    jobs: int = 0
    rows: int = 0
    seconds: float = 0.0
    features: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """The results as text for display."""
        return (
            f"{self.cases} queries, each on the local engine and on Spark with {_listed(SLOTS)} slots: "
            f"{len(self.differences)} differences; {self.rows} result rows, {self.empty} queries without any, "
            f"{self.left_out} drawn and left out; {self.jobs} Spark jobs, {AT_ONCE} at a time, "
            f"{self.seconds / max(self.jobs, 1):.2f} s a job"
        )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


class Everywhere:
    """Runs cases of one seed in one Spark session, which stays open."""

    def __init__(self, seed: int, spark: Any, slots: Sequence[int] = SLOTS) -> None:
        self._seed, self._spark, self._slots, self._oracle = seed, spark, slots, Oracle()

    def run(
        self, indexes: Iterable[int], wanted: int, told: Callable[[SparkReport], None] = lambda report: None
    ) -> SparkReport:
        """Run cases with these numbers until `wanted` of them could be run; `told` is called with the progress."""
        report = SparkReport()
        for index in indexes:
            if report.cases == wanted:
                break
            self._one(index, report)
            report.drawn = index + 1
            told(report)
        return report

    def _one(self, index: int, report: SparkReport) -> None:
        case = in_files(generate(case_seed(self._seed, index)))
        script = parse(case.script)
        query = bound(case, script)
        if not holds(query):
            report.left_out += 1
            return
        expected = expected_of(case, self._oracle, script)
        report.cases += 1
        report.features.update(case.features)
        report.rows += expected.table.num_rows
        report.empty += not expected.table.num_rows
        self._compare(f"case {index} on the local engine", expected, report, lambda: run(case, query))
        with tempfile.TemporaryDirectory(prefix="eddyline-case-") as folder:
            text = write(case, Path(folder))
            begin = time.monotonic()
            with ThreadPoolExecutor(AT_ONCE) as pool:
                jobs = {n: pool.submit(run_on_spark, case, text, n, self._spark) for n in self._slots}
                for slots, job in jobs.items():
                    self._compare(f"case {index} on Spark with slots={slots}", expected, report, job.result)
            report.jobs += len(jobs)
            report.seconds += time.monotonic() - begin

    def _compare(self, what: str, expected: Expected, report: SparkReport, outcome: Callable[[], CaseOutcome]) -> None:
        try:
            different = wrong(outcome(), expected)
        except Exception as error:
            different = f"{type(error).__name__}: {error}"
            if error.__cause__ is not None:  # the whole message of Spark
                sys.stderr.write(f"\n{error.__cause__}\n")
        if different is not None:
            report.differences.append(f"{what}: {different}")
            sys.stderr.write(f"\n{report.differences[-1]}\n")  # at once: a long run may be stopped before its end


def main(arguments: list[str] | None = None) -> int:
    """The command line; exit status 1 if anything differed."""
    from eddyline.spark.session import session

    parser = argparse.ArgumentParser(prog="fuzz --spark", description="random cases: Spark, the local engine, DuckDB")
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, default=None, help="run the case with this number only")
    parser.add_argument("--continue", dest="continues", action="store_true", help="leave out what the ledger has")
    given = parser.parse_args(arguments)
    sys.stderr.write(f"seed {given.seed}\n")

    def told(report: SparkReport) -> None:
        entry.cases, entry.differences = report.drawn - entry.first, len(report.differences)
        sys.stderr.write(f"\r{report.cases} queries, {len(report.differences)} differences")
        sys.stderr.flush()

    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # so that the files of the case are deleted too
    os.environ.setdefault("SPARK_SUBMIT_OPTS", SHORT_LIVED)
    spark, ours = session({"spark.log.level": "OFF"})
    try:
        with entered("fuzz", "fuzz --spark", given.seed, given.continues) as entry:
            indexes = range(entry.first, given.cases * 10) if given.only is None else range(given.only, given.only + 1)
            entry.first = indexes.start
            report = Everywhere(given.seed, spark).run(indexes, given.cases, told)
    finally:
        if ours:
            spark.stop()
    sys.stderr.write("\n")
    for difference in report.differences:
        sys.stdout.write(f"{difference}\n")
    sys.stdout.write(report.summary() + "\n")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
