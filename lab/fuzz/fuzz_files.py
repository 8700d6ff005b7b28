"""Random odd files of every format, read by a job and written by its sinks: each row compared with the law of values.

A case is a file (csv, json, parquet), batches of Arrow, or records of Avro, with columns that are declared or inferred.
The reference (value_law.py) says of each row whether it is dead, and what its values are. Some results go through a
sink and are read back by a reader that is not ours (read_back.py). A damaged file must be named in one line, or be read
as far as it can be.

    python -m lab.fuzz.fuzz_files --cases 2000 --seed 1 [--only 12]
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eddyline as el
from eddyline.bound.types import is_moment
from eddyline.errors import EddylineError, InternalError
from eddyline.runtime.options import Options
from eddyline.runtime.sources.avro_values import avro_values
from eddyline.runtime.sources.beside import Beside
from eddyline.runtime.sources.source import Wanted
from lab.fuzz import file_values as draw
from lab.fuzz.main import case_seed
from lab.fuzz.read_back import compare, through_sink
from lab.fuzz.value_law import BAD, Json, held_in, of_json, of_text, of_value, same
from lab.ledger import entered, stoppable

KINDS = ("csv", "json", "parquet", "arrow", "avro")
DAMAGES = ("bom", "gzip", "cut", "cut gzip", "empty beside", "garbage", "utf-16", "blank lines")
_TS = 1_767_225_600_000_000


@dataclass
class Report:
    """What the cases did."""

    seed: int
    cases: int = 0
    rows: int = 0
    dead: int = 0
    drawn: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """In one line."""
        drawn = ", ".join(f"{what} {count}" for what, count in sorted(self.drawn.items()))
        return (
            f"seed {self.seed}: {self.cases} cases, {self.rows} rows, {self.dead} of them dead; {drawn};"
            f" {len(self.differences)} differences"
        )


@dataclass
class Case:
    """The rows of a case. `law` says what the value of a row and column means as a type."""

    rng: Random
    kind: str
    names: list[str]
    types: list[tuple[str, pa.DataType]]
    values: list[list[Any]]
    law: Callable[[Any, int, pa.DataType], Any]

    def expected(self, types: Sequence[pa.DataType]) -> tuple[dict[int, list[Any]], int]:
        """The readable rows by number, and the count of dead ones, where the columns have these types."""
        rows = [[self.law(v, at, types[at]) for at, v in enumerate(row)] for row in self.values]
        good = {k: row for k, row in enumerate(rows) if not any(isinstance(v, str) and v == BAD for v in row)}
        return good, len(rows) - len(good)


def run_case(seed: int, index: int, report: Report) -> None:
    """Run one case; what is wrong is added to the report."""
    rng = Random(case_seed(seed, index))
    kind = rng.choice(KINDS)
    report.cases += 1
    report.drawn[kind] += 1

    def wrong(what: str) -> None:
        report.differences.append(f"case {index} ({kind}): {what}")

    with tempfile.TemporaryDirectory(prefix="eddyline-files-") as folder:
        try:
            _CASES[kind](rng, Path(folder), report, wrong)
        except Exception:
            wrong(f"crash: {traceback.format_exc()}")


def _case(rng: Random, kind: str, nested: bool, value: Callable[[pa.DataType], Any], law: Any) -> Case:
    types = [draw.type_of(rng, nested) for _ in range(rng.randint(1, 3))]
    rows = rng.choice((1, 2, 5, 12, 12, 150))
    return Case(
        rng,
        kind,
        [f"c{at}" for at in range(len(types))],
        types,
        [[value(t) for _, t in types] for _ in range(rows)],
        law,
    )


def _csv(rng: Random, folder: Path, report: Report, wrong: Callable[[str], None]) -> None:
    def value(type_: pa.DataType) -> str | None:
        return None if rng.random() < 0.08 else draw.text(rng, type_)

    case = _case(rng, "csv", False, value, lambda v, at, type_: None if v is None else of_text(v, type_))

    def cell(held: str | None) -> str:
        if held is None:
            return ""
        quoted = not held or any(sign in held for sign in ',"\n') or rng.random() < 0.2
        return '"' + held.replace('"', '""') + '"' if quoted else held

    lines = [",".join(["ts", "k", *case.names])]
    lines += [",".join(["2026-01-01", str(k), *map(cell, row)]) for k, row in enumerate(case.values)]
    _text_case(case, folder, lines, report, wrong)


def _json(rng: Random, folder: Path, report: Report, wrong: Callable[[str], None]) -> None:
    case = _case(rng, "json", True, lambda type_: draw.json_value(rng, type_), lambda v, at, type_: of_json(v, type_))
    lines = []
    for k, row in enumerate(case.values):
        members = [("ts", Json("text", "", '"2026-01-01"')), ("k", Json("number", "", str(k)))]
        given = [(n, v) for n, v in zip(case.names, row, strict=True) if v.kind != "null" or rng.random() < 0.5]
        lines.append(draw.object_([*members, *given], rng).spelling)
    _text_case(case, folder, lines, report, wrong)


def _text_case(case: Case, folder: Path, lines: list[str], report: Report, wrong: Callable[[str], None]) -> None:
    rng = case.rng
    text = ("\r\n" if case.kind == "csv" and rng.random() < 0.1 else "\n").join(lines)
    data = (text + ("\n" if rng.random() < 0.8 else "")).encode()
    damage = rng.choice(DAMAGES) if rng.random() < 0.25 else ""
    name, data, harmless = _damaged(rng, f"a.{case.kind}", data, damage)
    (folder / name).write_bytes(data)
    if damage == "empty beside":
        (folder / f"0.{case.kind}").touch()
    columns = _declared(case) if damage or rng.random() < 0.75 else ""
    _run_file(case, folder, columns, damage, harmless, report, wrong)


def _parquet(rng: Random, folder: Path, report: Report, wrong: Callable[[str], None]) -> None:
    case, table = _table_case(rng, "parquet", False)
    out = io.BytesIO()
    pq.write_table(
        table, out, row_group_size=rng.choice((1, 3, 1000)), compression=rng.choice(("snappy", "none", "zstd"))
    )
    damage = rng.choice(("cut", "garbage", "empty beside")) if rng.random() < 0.15 else ""
    name, data, harmless = _damaged(rng, "a.parquet", out.getvalue(), damage)
    (folder / name).write_bytes(data)
    if damage == "empty beside":
        (folder / "b.parquet").touch()
        harmless = False
    if rng.random() < 0.25:
        _run_file(case, folder, "", damage, harmless, report, wrong)
    else:
        _run_file(case, folder, _declared(case), damage, harmless, report, wrong)


def _arrow(rng: Random, folder: Path, report: Report, wrong: Callable[[str], None]) -> None:
    case, table = _table_case(rng, "arrow", True)
    names = ["ts", "k", *case.names]
    schema = pa.schema(dict(zip(names, [pa.timestamp("us"), pa.int64(), *(t for _, t in case.types)], strict=True)))
    declared = schema if rng.random() < 0.5 else None
    case = case if declared is not None else _undeclared(case)
    batches = [b.slice(at, 3) for b in table.to_batches() for at in range(0, b.num_rows, 3)] or table.to_batches()
    given = rng.choice((table, batches, iter(batches)))
    stream = el.stream(given, time="ts", schema=declared)
    _run(case, folder, "SELECT * FROM t", {"t": stream}, report, wrong)


def _table_case(rng: Random, kind: str, relaid: bool) -> tuple[Case, pa.Table]:
    types = [draw.type_of(rng, True) for _ in range(rng.randint(1, 3))]
    sources = [draw.source_type(rng, type_) for _, type_ in types]
    rows = rng.choice((1, 2, 5, 12))
    values = [[draw.value(rng, source) for source in sources] for _ in range(rows)]
    columns = [draw.as_column([row[at] for row in values], source) for at, source in enumerate(sources)]
    exact = [held_in(column) for column in columns]
    case = Case(
        rng,
        kind,
        [f"c{at}" for at in range(len(types))],
        types,
        [list(row) for row in zip(*exact, strict=True)],
        lambda v, at, type_: of_value(v, sources[at], type_),
    )
    laid = [draw.relaid(rng, column) if relaid else column for column in columns]
    arrays = [pa.array([_TS] * rows, pa.timestamp("us")), pa.array(range(rows), pa.int64()), *laid]
    return case, pa.table(arrays, ["ts", "k", *case.names])


def _undeclared(case: Case) -> Case:
    """The same case without declared types: every value stays as it is."""
    case.law = lambda v, at, type_: v
    return case


def _avro(rng: Random, folder: Path, report: Report, wrong: Callable[[str], None]) -> None:
    plain = {
        "boolean": pa.bool_(),
        "long": pa.int64(),
        "double": pa.float64(),
        "string": pa.string(),
        "bytes": pa.binary(),
    }
    name, type_ = draw.type_of(rng, False)
    fits = [n for n, source in plain.items() if pa.types.is_string(source) or _castable(source, type_)]
    avro = rng.choice(fits)
    deep = rng.random() < 0.4
    source = pa.list_(plain[avro]) if deep else plain[avro]
    type_ = pa.list_(type_) if deep else type_
    values = [draw.value(rng, source) for _ in range(8)]
    item: Any = {"type": "array", "items": ["null", avro]} if deep else avro
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": ["null", item]}]}
    parsed, records = fastavro.parse_schema(schema), []
    for held in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {"x": held})
        records.append(out.getvalue())
    reader = avro_values(Options("kafka", {"schema": json.dumps(schema)}), pa.schema([("x", type_)]))
    beside = Beside({}, np.arange(len(records)), lambda rows: [str(row) for row in rows])
    chunks = list(reader(records, Wanted(("x",), ("x",)), beside))
    found = [value for chunk in chunks for value in held_in(chunk.rows.column(0))]
    expected = [of_value(held, source, type_) for held in values]
    good = [held for held in expected if not (isinstance(held, str) and held == BAD)]
    report.rows, report.dead = report.rows + len(values), report.dead + len(values) - len(good)
    if not same(found, good):
        wrong(f"{values} of {avro} as {name}: expected {good}, found {found}")
    if sum(c.dead.num_rows for c in chunks if c.dead is not None) != len(values) - len(good):
        wrong(f"{values} of {avro} as {name}: other dead rows than {expected}")


def _castable(source: pa.DataType, type_: pa.DataType) -> bool:
    t = pa.types
    if t.is_binary(source):
        return bool(t.is_string(type_) or t.is_binary(type_))
    return not (t.is_binary(type_) or t.is_date(type_) or is_moment(type_))


def _declared(case: Case) -> str:
    columns = zip(case.names, case.types, strict=True)
    return f"(ts TIMESTAMP, k BIGINT, {', '.join(f'{name} {type_}' for name, (type_, _) in columns)})"


def _damaged(rng: Random, name: str, data: bytes, damage: str) -> tuple[str, bytes, bool]:
    """The name and bytes of a damaged file, and whether all rows must be read all the same."""
    if damage == "bom":
        return name, b"\xef\xbb\xbf" + data, True
    if damage == "gzip":
        return f"{name}.gz", gzip.compress(data), True
    if damage == "cut gzip":
        packed = gzip.compress(data)
        return f"{name}.gz", packed[: rng.randint(1, len(packed) - 1)], False
    if damage == "cut":
        return name, data[: rng.randint(1, len(data) - 1)], False
    if damage == "garbage":
        at = rng.randrange(len(data))
        return name, data[:at] + rng.randbytes(rng.randint(1, 9)) + data[at + rng.randint(0, 3) :], False
    if damage == "utf-16":
        return name, data.decode().encode("utf-16"), False
    if damage == "blank lines":
        return name, data.replace(b"\n", b"\n\n"), True
    return name, data, True


def _run_file(
    case: Case, folder: Path, columns: str, damage: str, harmless: bool, report: Report, wrong: Callable[[str], None]
) -> None:
    select = f"CREATE STREAM t {columns} USING {case.kind} OPTIONS (path '{folder}') TIMESTAMP BY ts; SELECT * FROM t"
    if damage:
        report.drawn[f"damage {damage}"] += 1
    if not harmless:
        _run_damaged(select, wrong)
        return
    _run(case, folder, select, {}, report, wrong, inferred=not columns and case.kind in ("csv", "json"))


def _run_damaged(select: str, wrong: Callable[[str], None]) -> None:
    """A damaged file is read as far as it can be, or named in one line."""
    try:
        run = el.query(select).start()
        run.to_arrow()
        run.wait()
    except InternalError as error:
        wrong(f"internal error: {error}\n{select}")
    except EddylineError as error:
        if "\n" in str(error) or ("a.c" not in str(error) and "a.j" not in str(error) and "parquet" not in str(error)):
            wrong(f"the error does not name the file in one line: {error}")


def _run(
    case: Case,
    folder: Path,
    select: str,
    streams: Any,
    report: Report,
    wrong: Callable[[str], None],
    inferred: bool = False,
) -> None:
    sink = case.rng.choice(("", "", "parquet", "json", "csv"))
    try:
        run = el.query(select, streams=streams).start()
        found, summary = run.to_arrow(), run.wait()
    except InternalError as error:
        wrong(f"internal error: {error}\n{select}")
        return
    except EddylineError as error:
        if not inferred:
            wrong(f"refused: {error}\n{select}\n{case.values}")
        return
    names = [name for name in case.names if name in found.schema.names]
    if inferred:
        case.values = [[row[case.names.index(name)] for name in names] for row in case.values]
    types = [found.schema.field(name).type for name in names]
    good, dead = case.expected(types)
    report.rows, report.dead = report.rows + len(case.values), report.dead + dead
    compare(good, names, found, wrong, "")
    if summary is None or (summary.rows_in, summary.rows_dead) != (len(case.values), dead):
        wrong(f"counted {summary and (summary.rows_in, summary.rows_dead)}, expected {(len(case.values), dead)}")
    if sink and good:
        report.drawn[f"sink {sink}"] += 1
        through_sink(sink, folder / "out", found, wrong)


_CASES = {"csv": _csv, "json": _json, "parquet": _parquet, "arrow": _arrow, "avro": _avro}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run cases; the exit status is 1 if there is a difference."""
    parser = argparse.ArgumentParser(prog="fuzz --files", description="odd files and values, read and written")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, default=None, help="run the case with this number only")
    parser.add_argument("--continue", dest="continues", action="store_true", help="leave out what the ledger has")
    given = parser.parse_args(arguments)
    report = Report(given.seed)
    with entered("fuzz", "fuzz --files", given.seed, given.continues) as entry:
        entry.first = entry.first if given.only is None else given.only
        for index in range(entry.first, given.cases) if given.only is None else [given.only]:
            known = len(report.differences)
            run_case(given.seed, index, report)
            entry.cases, entry.differences = report.cases, len(report.differences)
            for difference in report.differences[known:]:
                sys.stdout.write(f"{difference}\n")
            if sys.stderr.isatty() or not report.cases % 100:
                sys.stderr.write(f"\r{report.cases} cases, {len(report.differences)} differences")
                sys.stderr.flush()
    sys.stderr.write("\n")
    sys.stdout.write(report.summary() + "\n")
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
