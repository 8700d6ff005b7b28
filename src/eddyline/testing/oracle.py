"""The expected result of a script, computed by DuckDB: batch SQL over the same rows without the dead and the late ones.

The windows of SEMANTICS become plain conditions on two hidden columns of every alias: `__t`, the event time of a row in
microseconds, and for ROWS n `__until`, the time at which n newer rows have pushed the row out: the time of the row n
places further on in the window's order. At an instant t >= __t the row is among the last n exactly if t < __until. The
instant is the newest __t of a combination, or the slide boundary; TUMBLE, HOP and CUMULATE count what is before the end
of a window, and take the place of these conditions. Aggregates take three levels, because DuckDB has no
TRY round an aggregate: combinations with keys and arguments, groups with aggregates, outputs and HAVING.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import FunctionType

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

import eddyline.testing.quiet_exit  # noqa: F401
from eddyline.bound.bind_expr import chain
from eddyline.bound.model import MATCH, BoundQuery
from eddyline.cql.script import Declaration, FromItem, Script, WindowClause
from eddyline.plan.partition_groups import row_codes
from eddyline.state.keys import combine
from eddyline.testing.case import Batch, Case
from eddyline.testing.lateness import NEVER, SortedOut, micros, sort_out
from eddyline.testing.rewrite import EXACT, SORTED, Names, attempt, is_aggregate, is_call, window_end
from eddyline.testing.udfs import MACROS

SchemaOf = Callable[[str], pa.Schema]
_BORROWED = ("TUMBLE", "HOP", "CUMULATE")
_OPTIMIZERS = ("filter_pushdown", "join_order", "unused_columns")
"""The only optimizers of DuckDB that are on: those that small joins need to be quick. With fewer rewrites there is less
to trust."""


@dataclass(frozen=True)
class Expected:
    """The expected multiset of result rows. For an output of float aggregates, its error may be relative to
    `scale[i]`."""

    table: pa.Table
    scale: Mapping[int, np.ndarray]
    rows: Mapping[str, SortedOut]
    sql: str
    fails: bool = False
    """Whether there are fewer rows, or other ones, because lookups fail."""


class Oracle:
    """One DuckDB connection, used for any number of scripts."""

    def __init__(self) -> None:
        self._db = _connected()

    def expected(
        self,
        script: Script,
        schema_of: SchemaOf,
        batches: Sequence[Batch],
        tables: Mapping[str, pa.RecordBatch] | None = None,
    ) -> Expected:
        """The rows that `script` must give for these batches."""
        text, given, rows = self._prepared(script, schema_of, batches, tables or {})
        sql = text.sql()
        result = self._ask(sql, given)
        width = len(text.outputs)
        scale = {i: np.asarray(result.column(width + n), dtype=float) for n, i in enumerate(text.scaled)}
        return Expected(result.select(list(range(width))), scale, rows, sql)

    def combinations(self, script: Script, case: Case, query: BoundQuery, missing: Collection[str]) -> pa.Table:
        """The outputs of all combinations of rows without those of the tables `missing`, by alias, in whose place is
        one row of NULLs: those that satisfy all predicates over the other rows. The last column has their keys."""
        text, given, rows = self._prepared(script, case.schema, case.batches, case.tables)
        known = [part for condition in text.where for part in chain(condition, exp.And)]
        text.where = [part for part in known if not {c.table for c in part.find_all(exp.Column)} & {*missing}]
        for number, (item, source) in enumerate(zip(script.sources, query.sources, strict=True)):
            relation, name = text.relation(item), source.stream.name
            if item.alias in missing:
                given[relation] = pa.table({field.name: pa.nulls(1, field.type) for field in given[relation].schema})
            elif not source.stream.is_asked:
                columns = rows[name].used if name in rows else pa.Table.from_batches([case.tables[name]])
                codes = _codes(query, number, columns, rows[name].times if name in rows else None)
                given[relation] = given[relation].append_column("__code", pa.array(codes))
                text.outputs.append(exp.column("__code", exp.to_identifier(item.alias, quoted=True)))
        found, width = self._ask(text.sql(), given), len(query.outputs)
        codes = combine([np.asarray(column, np.int64) for column in found.columns[width:]])
        return found.select(list(range(width))).append_column(MATCH, pa.array(codes))

    @staticmethod
    def _prepared(
        script: Script, schema_of: SchemaOf, batches: Sequence[Batch], tables: Mapping[str, pa.RecordBatch]
    ) -> tuple[_Text, dict[str, pa.Table], dict[str, SortedOut]]:
        """The SQL of a script, the tables that it reads, and the rows of streams sorted into used, late and dead."""
        declared = {d.name.lower(): d for d in script.declarations}
        sources = {item.alias: declared[item.stream.lower()] for item in script.sources}
        schemas = {d.name: schema_of(d.name) for d in sources.values()}
        streams = {d.name: (d.time, d.lateness) for d in sources.values() if d.time is not None}
        rows = sort_out(streams, schemas, batches)
        text = _Text(script, {a: schemas[d.name] for a, d in sources.items()}, {a: d.time for a, d in sources.items()})
        given: dict[str, pa.Table] = {}
        for item in script.sources:
            name = sources[item.alias].name
            if name in rows:
                columns = rows[name].used.append_column("__t", pa.array(rows[name].times))
            else:
                columns = pa.Table.from_batches([tables[name]])
            given[text.relation(item)] = _plain(columns.select(text.used[item.alias]))
        if text.slide is not None:
            given["__w"] = pa.table({"__end": text.boundaries(rows, sources)})
        return text, given, rows

    def _ask(self, sql: str, given: Mapping[str, pa.Table]) -> pa.Table:
        """Run a query over Arrow tables. DuckDB finds the tables as globals of the calling function, which costs
        nothing; registering each table would take as long as the query."""
        ask = FunctionType(_execute.__code__, globals() | {f"{name}__given": table for name, table in given.items()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ask(self._db, sql)
            except (duckdb.InternalException, duckdb.FatalException):  # a bug; the connection is of no use now
                self._db = _connected()
                raise


def _connected() -> duckdb.DuckDBPyConnection:
    db = duckdb.connect(":memory:")
    for setting in ("TimeZone='UTC'", "threads=1", "enable_progress_bar=false", "error_on_division_by_zero=false"):
        db.execute(f"SET {setting}")
    known = [name for (name,) in db.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    db.execute(f"SET disabled_optimizers='{','.join(n for n in known if n not in _OPTIMIZERS)}'")
    for macro in MACROS:
        db.execute(macro)
    return db


def _execute(db: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    return db.execute(sql).to_arrow_table()


def _plain(table: pa.Table) -> pa.Table:
    """The columns in the types that functions see: dictionaries decoded, timestamps in microseconds."""
    for i, column in enumerate(table.columns):
        if pa.types.is_timestamp(column.type) and column.type.unit != "us":
            table = table.set_column(i, table.schema.names[i], micros(column.combine_chunks()))
        elif pa.types.is_dictionary(column.type):
            table = table.set_column(i, table.schema.names[i], column.cast(column.type.value_type))
    return table


def _codes(query: BoundQuery, source: int, columns: pa.Table, times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The codes of rows of a source, of which the key of a combination is made."""
    schema = query.sources[source].stream.schema
    used = [(columns.column(name), schema.field(name).type) for name in query.columns_of_source(source)]
    arrays = [_plain(pa.table({"": column})).column(0).combine_chunks().cast(type) for column, type in used]
    codes = row_codes(arrays, times)
    return np.zeros(columns.num_rows, np.int64) if codes is None else codes


def _start(window: WindowClause, end: str) -> str:
    """The SQL of the time at which a window begins that ends at `end`."""
    if window.kind != "CUMULATE":
        return f"{end} - {window.size}"
    size, last = window.size, f"{end} - 1"
    return f"{last} - ((({last} - {window.offset}) % {size}) + {size}) % {size}"


class _Text:
    """The SQL of one script."""

    def __init__(self, script: Script, schemas: Mapping[str, pa.Schema], times: Mapping[str, str | None]) -> None:
        self.names, self.items, self.times = Names(schemas), script.sources, times
        sliding = [item.window for item in script.sources if item.window is not None and item.window.slide is not None]
        self.slide = sliding[0].slide if sliding else None
        self.borrowed = sliding[0] if sliding and sliding[0].kind in _BORROWED else None
        """A window that counts start <= ts < end."""
        select = script.select
        raw = [e for item in select.expressions for e in self._expanded(item)]
        named = {e.alias.lower(): e.unalias() for e in raw if e.alias}
        named = {n: self.names.qualify(e, {}) for n, e in named.items()}
        self.outputs = [self.names.qualify(e.unalias(), named) for e in raw]
        conditions = [j.args["on"] for j in select.args.get("joins") or [] if j.args.get("on")]
        conditions += [select.args["where"].this] if select.args.get("where") else []
        self.where = [self.names.qualify(c, named) for c in conditions]
        group = select.args.get("group")
        keys = [self._key(e, named) for e in (group.expressions if group else [])]
        self.keys = [key for key in keys if window_end(key) is None]
        having = select.args.get("having")
        self.having = self.names.qualify(having.this, named) if having else None
        aggregates = any(is_aggregate(node) for e in self.outputs for node in e.walk())
        self.grouped = bool(group or aggregates or having)
        self.scaled: list[int] = []
        self.used = self._used()

    def _expanded(self, item: exp.Expr) -> list[exp.Expr]:
        """An item of SELECT as a list, with `*` expanded to its columns."""
        if not isinstance(item, exp.Star) and not (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            return [item]
        wanted = item.table.lower() if isinstance(item, exp.Column) else ""
        return [
            exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(alias, quoted=True))
            for alias, schema in self.names.schemas.items()
            if not wanted or alias.lower() == wanted
            for name in schema.names
        ]

    def _key(self, key: exp.Expr, named: Mapping[str, exp.Expr]) -> exp.Expr:
        if isinstance(key, exp.Literal) and not key.is_string:
            return self.outputs[int(key.this) - 1].unnest()
        return self.names.qualify(key, named).unnest()

    def relation(self, item: FromItem) -> str:
        """The DuckDB table of an alias."""
        return f"__s{self.items.index(item)}"

    def _used(self) -> dict[str, list[str]]:
        """For every alias the columns that the script names, in the order of the schema, and the hidden time."""
        everything = [*self.outputs, *self.where, *self.keys, *([self.having] if self.having else [])]
        named = {(c.table, c.name) for e in everything for c in e.find_all(exp.Column)}
        used = {}
        for alias, schema in self.names.schemas.items():
            columns = [n for n in schema.names if (alias, n) in named]
            timed = self.times[alias] is not None
            used[alias] = [*columns, "__t"] if timed else columns or schema.names[:1]
        return used

    def boundaries(self, rows: Mapping[str, SortedOut], sources: Mapping[str, Declaration]) -> pa.Array:
        """The slide boundaries at which a row may be. With SLIDE the last one is the first boundary >= the newest
        readable row."""
        slide = self.slide or 1
        if self.borrowed is not None:
            item = next(item for item in self.items if item.window is self.borrowed)
            at = (self.borrowed.offset + self.borrowed.size) % slide
            first = np.unique((rows[sources[item.alias].name].times - at) // slide * slide + at)
            return pa.array(np.unique(np.add.outer(first, np.arange(0, self.borrowed.size + 2 * slide, slide))))
        newest = max(r.newest for r in rows.values())
        if newest == NEVER:
            return pa.array([], pa.int64())
        last = -(-newest // slide) * slide
        for item in self.items:
            if item.window is not None and item.window.kind == "RANGE":
                times = rows[sources[item.alias].name].times
                first = np.unique(-(-times // slide) * slide)
                ends = np.unique((first[:, None] + np.arange(0, item.window.size + slide, slide)[None, :]).ravel())
                return pa.array(ends[ends <= last])
        oldest = min((int(r.times.min()) for r in rows.values() if len(r.times)), default=last + 1)
        return pa.array(np.arange(-(-oldest // slide) * slide, last + 1, slide))

    def sql(self) -> str:
        """The whole query."""
        source = ", ".join(f'{self.relation(item)} AS "{item.alias}"' for item in self.items)
        source += ", __w" if self.slide is not None else ""
        loaded = [self._loaded(item) for item in self.items]
        loaded += ["__w AS MATERIALIZED (SELECT * FROM __w__given)"] if self.slide is not None else []
        conditions = [self._inner(c) for c in self.where] + self._windows()
        where = " AND ".join(f"({c})" for c in conditions) or "TRUE"
        if not self.grouped:
            outputs = ", ".join(f"{self._inner(e)} AS c{i}" for i, e in enumerate(self.outputs))
            return f"WITH {', '.join(loaded)} SELECT {outputs} FROM {source} WHERE {where}"
        return f"WITH {', '.join(loaded)} {self._grouped(source, where)}"

    def _loaded(self, item: FromItem) -> str:
        """The rows of an alias with its hidden columns. They are materialised so that DuckDB pushes no filter into
        Arrow."""
        name, columns = self.relation(item), "*"
        if item.window is not None and item.window.kind == "ROWS":
            order = ", ".join(["__t", *(f'"{n}"' for n in self.used[item.alias] if n != "__t")])
            columns += f", lead(__t, {item.window.size}) OVER (ORDER BY {order}) AS __until"
        return f"{name} AS MATERIALIZED (SELECT {columns} FROM {name}__given)"

    def _inner(self, node: exp.Expr) -> str:
        """An expression over the combinations."""
        return self._attempt(node, lambda _: None).sql("duckdb")

    def _attempt(self, node: exp.Expr, known: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
        def replace(part: exp.Expr) -> exp.Expr | None:
            found = known(part)
            if found is not None:
                return found
            end = window_end(part)
            if end is not None:
                window = next((item.window for item in self.items if item.window is not None), None)
                assert window is not None
                what = {"window_end": "__end", "window_start": _start(window, "__end"), "window_time": "__end - 1"}
                return exp.maybe_parse(f"make_timestamp({what[end]})", dialect="duckdb")
            ours = self.names.duration_abs(part) or self.names.decoded(part)
            return None if ours is None else attempt(ours, replace)

        return attempt(node, replace)

    def _windows(self) -> list[str]:
        """The conditions that every component is in its window at the newest time of the combination, or at the slide
        boundary."""
        timed = [item for item in self.items if self.times[item.alias] is not None]
        newest = "greatest(" + ", ".join(f'"{item.alias}".__t' for item in timed) + ")"
        at = newest if self.slide is None else "__w.__end"
        conditions = []
        for item in timed:
            time = f'"{item.alias}".__t'
            before = "<=" if self.borrowed is None else "<"
            if self.slide is not None:
                conditions.append(f"{time} {before} {at}")
            if item.window is not None and item.window.kind in _BORROWED:
                conditions.append(f"{time} >= {_start(item.window, at)}")
            elif item.window is not None and item.window.kind == "RANGE":
                sign = "<" if self.slide is not None and self.borrowed is None else "<="
                conditions.append(f"{at} - {time} {sign} {item.window.size}")
            elif item.window is not None and item.window.kind == "ROWS":
                gone = "<" if self.borrowed is None else "<="
                conditions.append(f'"{item.alias}".__until IS NULL OR {at} {gone} "{item.alias}".__until')
        return conditions

    def _grouped(self, source: str, where: str) -> str:
        arguments: list[str] = []
        aggregates: list[str] = []
        scales: list[str] = []

        def place(items: list[str], item: str) -> int:
            if item not in items:
                items.append(item)
            return items.index(item)

        def known(part: exp.Expr) -> exp.Expr | None:
            if part.unnest() in self.keys:
                return exp.column(f"__k{self.keys.index(part.unnest())}")
            if not is_aggregate(part):
                return None
            copy = part.copy()
            argument = copy.expressions[0] if copy.expressions else exp.Star()
            argument = argument.expressions[0] if isinstance(argument, exp.Distinct) else argument
            if not isinstance(argument, exp.Star):
                name = f"__x{place(arguments, self._inner(argument))}"
                argument.replace(exp.column(name))
                if is_call(part, *SORTED):
                    rest = "".join(f", {e.sql('duckdb')}" for e in copy.expressions[1:])
                    return exp.column(f"__a{place(aggregates, f'{copy.name}({name}{rest} ORDER BY {name})')}")
                if is_call(part, "approx_count_distinct"):
                    return exp.column(f"__a{place(aggregates, f'count(DISTINCT {name})')}")
                if not is_call(part, *EXACT):
                    squares = "" if is_call(part, "sum", "avg") else f" + sum({name}::DOUBLE * {name}::DOUBLE)"
                    here.append(f"__z{place(scales, f'sum(abs({name}::DOUBLE)){squares}')}")
            return exp.column(f"__a{place(aggregates, copy.sql('duckdb'))}")

        outputs = []
        scaled = []
        for i, output in enumerate(self.outputs):
            here: list[str] = []
            outputs.append(f"{self._attempt(output, known).sql('duckdb')} AS c{i}")
            if here:
                self.scaled.append(i)
                scaled.append(f"greatest({', '.join(here)}) AS z{i}")
        here = []
        having = self._attempt(self.having, known).sql("duckdb") if self.having else "TRUE"
        keys = [*(["__end"] if self.slide is not None else []), *(f"__k{i}" for i in range(len(self.keys)))]
        first = [*(["__w.__end AS __end"] if self.slide is not None else []), "1 AS __one"]
        first += [f"{self._inner(k)} AS __k{i}" for i, k in enumerate(self.keys)]
        first += [f"{x} AS __x{i}" for i, x in enumerate(arguments)]
        second = [*keys, *(f"{a} AS __a{i}" for i, a in enumerate(aggregates))]
        second += [f"{z} AS __z{i}" for i, z in enumerate(scales)] + ["count(*) AS __n"]
        combinations = f"SELECT {', '.join(first)} FROM {source} WHERE {where}"
        groups = f"SELECT {', '.join(second)} FROM ({combinations})" + (f" GROUP BY {', '.join(keys)}" if keys else "")
        return f"SELECT {', '.join([*outputs, *scaled])} FROM ({groups}) WHERE __n > 0 AND ({having})"
