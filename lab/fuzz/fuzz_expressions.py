"""Random expressions over edge values: the same bits in batches of every size and in every layout, and DuckDB's values.

    python -m lab.fuzz.fuzz_expressions --cases 2000 --seed 7 [--rows 100] [--jobs 2] [--only 12]

A case is one expression and rows of edge values. It fails if a batch size or a layout changes a bit or the number of
failures, if DuckDB gives another value or type, or if anything raises. Then the smallest part of the expression that
fails is printed. Every case has a seed of its own made from the seed and its number. Exit status 1 if any case failed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from eddyline.bound import types as t
from eddyline.bound.bind import bind
from eddyline.bound.expr import Call, Expr, walk
from eddyline.bound.functions import table as function_table
from eddyline.cql.dialect import EDDYLINE
from eddyline.cql.script import parse
from eddyline.testing.case import Batch
from eddyline.testing.oracle import Oracle
from lab.fuzz import same_bits
from lab.fuzz.edge_values import EDGE_SCHEMA, edge_rows
from lab.fuzz.expressions import random_expr
from lab.fuzz.layouts import LAYOUTS
from lab.fuzz.main import case_seed
from lab.fuzz.same_bits import Different, Values
from lab.ledger import entered, stoppable

_WANTED = (t.BOOL, t.INT64, t.DOUBLE, t.STRING, t.DATE, t.TIMESTAMP, t.INTERVAL, pa.decimal128(18, 3), t.BINARY)
_OWN_MEANING = re.compile(r"date_diff\('quarter'|epoch\(\(")
"""Calls that give something else in DuckDB: before the year 0 its quarters are not those after; of a difference of
times it adds the seconds of the days to those of the rest, so the last bit of `epoch` is another one."""
_CHUNK = 25
_MOST_FAILURES = 20


@dataclass(frozen=True)
class ExpressionCase:
    """An expression over the columns of `rows`."""

    text: str
    rows: pa.Table

    @property
    def script(self) -> str:
        """A script that computes the expression."""
        return f"CREATE STREAM s USING memory TIMESTAMP BY ts; SELECT {self.text} AS value, s.ts FROM s"


@dataclass
class ExpressionReport:
    """The results of a run."""

    cases: int = 0
    failures: list[str] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)

    def add(self, other: ExpressionReport) -> None:
        """Add the results of another process's run."""
        self.cases += other.cases
        self.failures += other.failures
        self.functions += other.functions


def draw(seed: int, rows: int) -> ExpressionCase:
    """The case of a seed."""
    rng = random.Random(seed)
    text = ""
    while not text or _OWN_MEANING.search(text):
        text = random_expr(rng, rng.choice(_WANTED), _columns(EDGE_SCHEMA), rng.randint(1, 3))
    used = [name for name in EDGE_SCHEMA.names if re.search(rf"\b{name}\b", text)]
    table = edge_rows(rng, rows, used)
    if "json" in text:  # DuckDB takes NaN for JSON
        table = pa.table([_without_nan(column) for column in table.columns], table.column_names)
    return ExpressionCase(text, table)


def _without_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.replace_substring(column, "nan", "no") if pa.types.is_string(column.type) else column


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """The columns as SQL writes them, elements of lists, and fields of structs."""
    columns = [(f"s.{f.name}", f.type) for f in schema]
    lists = [(c, type) for c, type in columns if t.is_list(type)]
    columns += [(f"array_length({c})", t.INT64) for c, _ in lists]
    columns += [(f"{c}[{place}]", type.value_type) for c, type in lists for place in (1, -1)]
    return columns + [(f'{c}."{f.name}"', f.type) for c, type in columns if pa.types.is_struct(type) for f in type]


def check(case: ExpressionCase, oracle: Oracle, number: int) -> Expr:
    """The bound expression; Different, or whatever else the engine raises, if the case fails."""
    script = parse(case.script)

    def make(schema: pa.Schema) -> Expr:
        return bind(script, lambda declaration: schema).outputs[0].expr

    ours = same_bits.check(make, case.rows, small=[list(LAYOUTS)[number % len(LAYOUTS)]])
    batch = Batch((("s", case.rows.combine_chunks().to_batches()[0]),))
    answer = oracle.expected(script, lambda name: case.rows.schema, [batch]).table
    theirs = answer.take(pc.sort_indices(answer.column(1))).column(0).combine_chunks()
    if t.sql_type(theirs.type) != t.sql_type(ours.array.type) and theirs.null_count < len(theirs):
        raise Different(f"type {t.sql_type(ours.array.type)}, DuckDB {t.sql_type(theirs.type)}")
    same_bits.compare("DuckDB", case.rows, ours, Values(theirs, ours.failures))
    return make(case.rows.schema)


def run(seed: int, numbers: Sequence[int], rows: int) -> ExpressionReport:
    """Run the cases with these numbers."""
    report, oracle = ExpressionReport(), _oracle()
    for number in numbers:
        case = draw(case_seed(seed, number), rows)
        report.cases += 1
        try:
            expr = check(case, oracle, number)
        except Exception as error:
            report.failures.append(f"# case {number} of seed {seed}: {case.text}\n{_smallest(case, error, number)}")
        else:
            report.functions.update({node.name for node in walk(expr) if isinstance(node, Call)})
    return report


@cache
def _oracle() -> Oracle:
    return Oracle()


def _smallest(case: ExpressionCase, error: Exception, seed: int) -> str:
    """The smallest part of the expression that fails, and how."""
    expression = parse(case.script).select.expressions[0].unalias()
    for text in sorted({node.sql(dialect=EDDYLINE, normalize_functions=False) for node in expression.walk()}, key=len):
        part = ExpressionCase(text, case.rows)
        try:
            bind(parse(part.script), lambda declaration: case.rows.schema)
        except Exception:  # a part that is no expression by itself
            continue
        try:
            check(part, _oracle(), seed)
        except Exception as found:
            return f"{text}\n    {_described(found)}"
    return _described(error)


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, Different) else "".join(traceback.format_exception(error, limit=-4)).strip()


def main(arguments: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="fuzz --functions", description="random expressions beside DuckDB")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=100, help="rows of edge values for each expression")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; one per core if not given")
    parser.add_argument("--only", type=int, default=None, help="run the case with this number only")
    parser.add_argument("--continue", dest="continues", action="store_true", help="leave out what the ledger has")
    given = parser.parse_args(arguments)
    sys.stderr.write(f"seed {given.seed}\n")
    if given.only is not None:
        sys.stdout.write(draw(case_seed(given.seed, given.only), given.rows).script + "\n")
    total, start = ExpressionReport(), time.monotonic()
    with entered("fuzz", "fuzz --functions", given.seed, given.continues) as entry:
        numbers = range(entry.first, given.cases) if given.only is None else range(given.only, given.only + 1)
        entry.first = numbers.start
        for part in _parts_of(given.seed, numbers, given.rows, given.jobs):
            total.add(part)
            entry.cases, entry.differences = total.cases, len(total.failures)
            sys.stdout.writelines(f"\n{failure}\n" for failure in part.failures)
            sys.stderr.write(f"\r{total.cases} expressions, {len(total.failures)} differences")
            sys.stderr.flush()
            if len(total.failures) >= _MOST_FAILURES:
                break
    sys.stderr.write("\n")
    never = [f.name for f in function_table() if f.name not in total.functions]
    sys.stdout.write(
        f"{total.cases} expressions over {given.rows} rows, {len(total.failures)} differences, seed {given.seed}, "
        f"{time.monotonic() - start:.0f} s\nfunctions never drawn: {', '.join(never) or 'none'}\n"
    )
    return 1 if total.failures else 0


def _parts_of(seed: int, numbers: Sequence[int], rows: int, jobs: int) -> Iterator[ExpressionReport]:
    chunks = [numbers[i : i + _CHUNK] for i in range(0, len(numbers), _CHUNK)]
    if jobs == 1 or len(chunks) == 1:
        yield from (run(seed, chunk, rows) for chunk in chunks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(run, seed, chunk, rows) for chunk in chunks]
        try:
            yield from (future.result() for future in waiting)
        finally:
            pool.shutdown(cancel_futures=True)


if __name__ == "__main__":
    sys.exit(stoppable(main))
