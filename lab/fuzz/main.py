"""Random cases on the engine and on the oracle, compared; a difference is made small and printed as a script.

    python -m lab.fuzz.main --cases 20000 --seed 7 [--migrate] [--jobs 2] [--first 0] [--only 1234] [--out DIR]
        [--continue]

Every case has a seed of its own made from the seed and its number, so `--only` repeats one. Exit status 1 if any
differed.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

import pyarrow as pa

from eddyline.bound.expr import Aggregate, Call, walk
from eddyline.bound.functions import table as function_table
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.testing.case import Case
from eddyline.testing.compare import difference
from eddyline.testing.oracle import Oracle
from lab.fuzz import random_plans
from lab.fuzz.generate import ANY_KIND, CaseKind, generate
from lab.fuzz.reproduce import reproduce
from lab.fuzz.run import answered, bound, expected_of, run, shares_stems, wrong, wrong_partial
from lab.fuzz.shrink import shrink
from lab.fuzz.spill_coverage import LEAST, LEAST_MOVED, MISSED, MOVED, TRACK, WENT, features_of, too_low
from lab.ledger import entered, stoppable

TieBreaker = Callable[[Case, BoundQuery], pa.Table]
_CHUNK = 50
_MOST_FAILURES = 5


@dataclass(frozen=True)
class Failure:
    """A failed case: the difference, which engine is right, and the file that reproduces it."""

    index: int
    kind: str
    message: str
    verdict: str
    script: str


@dataclass
class FuzzReport:
    """The results of a run of the fuzzer."""

    cases: int = 0
    empty: int = 0
    seconds: float = 0.0
    features: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    migrations: Counter[str] = field(default_factory=Counter)
    """The number of completed migrations, by strategy."""
    seen: Counter[str] = field(default_factory=Counter)
    """The number of cases in which something happened to groups that can leave memory."""
    dead: int = 0
    """The number of cases in which lookups of tables failed."""
    partial: int = 0
    """The number of cases with partial rows."""
    shared: int = 0
    """The number of cases in which aliases share a SteM."""
    failures: list[Failure] = field(default_factory=list)

    def add(self, other: FuzzReport) -> None:
        """Add the results of another process's run."""
        self.cases += other.cases
        self.empty += other.empty
        self.features += other.features
        self.functions += other.functions
        self.migrations += other.migrations
        self.seen += other.seen
        self.dead += other.dead
        self.partial += other.partial
        self.shared += other.shared
        self.failures += other.failures

    def summary(self) -> str:
        """The results as text for display."""
        rate = self.cases / self.seconds if self.seconds else 0.0
        share = 100 * self.empty / self.cases if self.cases else 0.0
        never = [f.name for f in function_table() if f.name not in self.functions]
        lines = [
            f"{self.cases} cases, {len(self.failures)} differences, {share:.1f} % with an empty result, "
            f"{rate:.1f} cases/s",
            "features: " + ", ".join(f"{name} {count}" for name, count in self.features.most_common()),
            "functions: " + ", ".join(f"{name} {count}" for name, count in self.functions.most_common()),
            "functions never drawn: " + (", ".join(never) or "none"),
            "migrations: " + (", ".join(f"{how} {count}" for how, count in self.migrations.most_common()) or "none"),
        ]
        shares = (f"{what} {count} ({100 * count / self.cases:.0f} %)" for what, count in self.seen.most_common())
        lines += ["groups: " + ", ".join(shares)] if self.seen else []
        lines += [f"lookups failed in {self.dead} cases"] if self.dead else []
        lines += [f"partial rows in {self.partial} cases"] if self.partial else []
        lines += [f"aliases share a SteM in {self.shared} cases"] if self.shared else []
        return "\n".join(lines)


def case_seed(seed: int, index: int) -> int:
    """The seed of one case."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:8], "big")


class Fuzzer:
    """Runs cases of one seed."""

    def __init__(
        self,
        seed: int,
        tie_breaker: TieBreaker | None = None,
        shrink_seconds: float = 20.0,
        kind: CaseKind = ANY_KIND,
    ) -> None:
        self._seed, self._tie_breaker, self._shrink_seconds = seed, tie_breaker, shrink_seconds
        self._kind = kind
        self._oracle = Oracle()

    def run(self, indexes: Iterable[int]) -> FuzzReport:
        """Run the cases with these numbers."""
        report, start, before = FuzzReport(), time.monotonic(), random_plans.done.copy()
        for index in indexes:
            self._one(index, report)
            if len(report.failures) >= _MOST_FAILURES:
                break
        report.migrations = random_plans.done - before
        report.seconds = time.monotonic() - start
        return report

    def _one(self, index: int, report: FuzzReport) -> None:
        case = generate(case_seed(self._seed, index), self._kind)
        report.cases += 1
        report.features.update(case.features)
        failure = self._try(case, report)
        if failure is None:
            return
        kind, message = failure
        small = shrink(case, lambda c: (self._try(c) or ("", ""))[0] == kind, self._shrink_seconds)
        message = (self._try(small) or (kind, message))[1]
        title = f"Seed {self._seed}, case {index}: {kind}\n\n{message}\n"
        report.failures.append(Failure(index, kind, message, self._verdict(small), reproduce(small, title)))

    def _try(self, case: Case, report: FuzzReport | None = None) -> tuple[str, str] | None:
        """Run a case: None if it passes, else the kind of failure and the details."""
        stage = "the script is refused"
        try:
            script = parse(case.script)
            query = bound(case, script)
            stage = "the oracle fails"
            expected = expected_of(case, self._oracle, script)
            if report is not None:
                report.empty += not expected.table.num_rows
                report.functions.update(_functions(query))
                report.functions.update(_written(case.select.text, report.functions))
            stage = "the engine fails"
            outcome = run(case, query)
            if report is not None:
                report.shared += shares_stems(case, query)
                report.dead += bool(outcome.failed)
                report.partial += outcome.partial is not None and outcome.partial.rows.num_rows > 0
                report.seen.update(outcome.seen)
                for what in {MISSED, MOVED, TRACK, WENT} & outcome.seen:
                    report.seen.update(f"{what}, {feature}" for feature in features_of(case))
            different = wrong(outcome, expected) or wrong_partial(case, outcome, self._oracle)
        except Exception as error:
            return f"{stage}: {type(error).__name__}", "".join(traceback.format_exception(error, limit=-6))
        return None if different is None else ("a difference", different)

    def _verdict(self, case: Case) -> str:
        """The verdict of the naive engine: whether the engine or the oracle is right."""
        if self._tie_breaker is None:
            return "no tie-breaker"
        try:
            third = self._tie_breaker(answered(case), bound(case))
            expected = expected_of(case, self._oracle)
            with_oracle = difference(third, expected.table, expected.scale) is None
            with_engine = difference(run(case).table, third, {}) is None
        except Exception as error:
            return f"the tie-breaker fails: {type(error).__name__}: {error}"
        agrees = {
            (True, False): "the oracle",
            (False, True): "the engine",
            (True, True): "both about the rows",
            (False, False): "neither",
        }
        return f"the naive engine agrees with {agrees[with_oracle, with_engine]}"


def _functions(query: BoundQuery) -> Iterator[str]:
    outputs = [*query.expressions, *(o.expr for o in query.outputs)]
    outputs += [query.group.having] if query.group and query.group.having is not None else []
    for expr in outputs:
        for node in walk(expr):
            if isinstance(node, Call | Aggregate):
                yield node.name.lower()


def _written(text: str, seen: Mapping[str, int]) -> Iterator[str]:
    """Functions that binding replaces by others, such as NOT LIKE: they are found in the text."""
    for function in function_table():
        if function.name not in seen and re.search(rf"\b{re.escape(function.name)}\b", text, re.IGNORECASE):
            yield function.name


def naive_of_checkout() -> TieBreaker | None:
    """The naive engine in the tests of a checkout, if this is one."""
    path = Path(__file__).parents[2] / "tests" / "support" / "naive.py"
    spec = importlib.util.spec_from_file_location("eddyline_naive", path) if path.exists() else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    tie_breaker: TieBreaker = module.naive
    return tie_breaker


def _run_chunk(seed: int, indexes: list[int], shrink_seconds: float, kind: CaseKind) -> FuzzReport:
    return _fuzzer_of(seed, shrink_seconds, kind).run(indexes)


@cache
def _fuzzer_of(seed: int, shrink_seconds: float, kind: CaseKind) -> Fuzzer:
    """One fuzzer per process: its oracle is a database connection."""
    return Fuzzer(seed, naive_of_checkout(), shrink_seconds, kind)


def fuzz(
    cases: int,
    seed: int,
    jobs: int = 1,
    only: int | None = None,
    first: int = 0,
    progress: Callable[[FuzzReport], None] | None = None,
    shrink_seconds: float = 20.0,
    kind: CaseKind = ANY_KIND,
) -> FuzzReport:
    """Run cases `first` to `first + cases`, or just one."""
    numbers = list(range(first, first + cases)) if only is None else [only]
    chunks = [numbers[i : i + _CHUNK] for i in range(0, len(numbers), _CHUNK)]
    total, start = FuzzReport(), time.monotonic()

    def take(part: FuzzReport) -> bool:
        total.add(part)
        total.seconds = time.monotonic() - start
        if progress is not None:
            progress(total)
        return len(total.failures) < _MOST_FAILURES

    if jobs == 1:
        for chunk in chunks:
            if not take(_run_chunk(seed, chunk, shrink_seconds, kind)):
                break
        return total
    with ProcessPoolExecutor(jobs, initializer=_leave_interrupts) as pool:
        waiting = [pool.submit(_run_chunk, seed, chunk, shrink_seconds, kind) for chunk in chunks]
        try:
            for future in waiting:
                if not take(future.result()):
                    break
        finally:
            pool.shutdown(cancel_futures=True)
    return total


def _leave_interrupts() -> None:
    """Ctrl-C is for the process that started the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description="random cases: the engine beside DuckDB")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; one per core if not given")
    parser.add_argument("--migrate", action="store_true", help="only joins whose plans change while they run")
    parser.add_argument("--spill", action="store_true", help="only jobs whose partition groups go to disk")
    parser.add_argument("--balance", action="store_true", help="only jobs whose partition groups move between slots")
    parser.add_argument("--access", action="store_true", help="only joins with tables that are asked")
    parser.add_argument("--aliases", action="store_true", help="only self-joins, most with SteMs that aliases share")
    parser.add_argument("--windows", action="store_true", help="only aggregates, most with TUMBLE, HOP or CUMULATE")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument(
        "--continue", dest="continues", action="store_true", help="leave out the cases that the ledger has on this code"
    )
    parser.add_argument("--only", type=int, default=None, help="run the case with this number only")
    parser.add_argument(
        "--show", action="store_true", help="with --only: print the case as a script, whatever it gives"
    )
    parser.add_argument("--out", type=Path, default=None, help="a folder for the scripts of failing cases")
    given = parser.parse_args(arguments)

    def progress(report: FuzzReport) -> None:
        entry.cases, entry.differences = report.cases, len(report.failures)
        rate = report.cases / max(report.seconds, 1e-9)
        line = f"\r{report.cases} cases, {len(report.failures)} differences, {rate:.1f} cases/s"
        sys.stderr.write(line)
        sys.stderr.flush()

    kind = CaseKind(given.migrate, given.spill, given.balance, given.access, given.aliases, given.windows)
    if given.show and given.only is not None:
        sys.stdout.write(reproduce(generate(case_seed(given.seed, given.only), kind)))
    sys.stderr.write(f"seed {given.seed}\n")
    options = [f"--{name}" for name in asdict(kind) if getattr(given, name)]
    with entered("fuzz", " ".join(["fuzz", *options]), given.seed, given.continues) as entry:
        entry.first = max(entry.first, given.first)
        cases = max(0, given.first + given.cases - entry.first)
        report = fuzz(cases, given.seed, given.jobs, given.only, entry.first, progress, kind=kind)
        if given.only is not None:
            entry.first, entry.cases = given.only, report.cases
    sys.stderr.write("\n")
    for failure in report.failures:
        head = f"# case {failure.index} of seed {given.seed}: {failure.kind}; {failure.verdict}\n"
        sys.stdout.write(f"{head}# {failure.message.replace(chr(10), chr(10) + '# ')}\n{failure.script}\n")
        if given.out is not None:
            given.out.mkdir(parents=True, exist_ok=True)
            (given.out / f"case_{given.seed}_{failure.index}.py").write_text(failure.script)
    sys.stdout.write(report.summary() + "\n")
    expected = {} if given.windows else LEAST_MOVED if given.balance else LEAST if given.spill else {}
    seldom = too_low(report.seen, report.cases, expected)
    sys.stdout.writelines(f"too seldom: {what}\n" for what in seldom)
    return 1 if report.failures or seldom else 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
