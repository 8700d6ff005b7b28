"""From a parsed script to a query: names are resolved, expressions are typed, and meaningless ones are refused.

    >>> from eddyline.cql.script import parse
    >>> stream = "CREATE STREAM s (x BIGINT, ts TIMESTAMP) USING json TIMESTAMP BY ts"
    >>> script = parse(f"{stream}; SELECT -x AS y FROM s WHERE x > 0 AND x < 9")
    >>> query = bind(script, lambda declaration: pa.schema(declaration.columns))
    >>> query.schema.names, len(query.predicates)
    (['y'], 2)

The query needs no further checks: `BoundQuery` checks itself when it is made; no later stage looks at the text again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

import pyarrow as pa
from sqlglot import exp

from eddyline.bound.bind_expr import Binder, chain
from eddyline.bound.bind_hints import Clause
from eddyline.bound.bind_methods import access_methods
from eddyline.bound.bind_names import NameScope
from eddyline.bound.bind_select import Item, aliases_of, bind_items, bind_outputs, items_of
from eddyline.bound.bind_time import timed
from eddyline.bound.expr import Expr
from eddyline.bound.inferred_text import with_file_of
from eddyline.bound.kept_types import kept
from eddyline.bound.model import MATCH, MISSING, BoundQuery, BoundSource, BoundStream, GroupBy, Window, WindowKind
from eddyline.bound.slide import Slide, borrowed
from eddyline.bound.types import in_one_zone
from eddyline.cql.names import did_you_mean, same
from eddyline.cql.places import Place, shown, wrong
from eddyline.cql.script import Declaration, FromItem, Script, WindowClause

_IN_PYTHON = "streams={{'{}': el.stream(..., time='ts')}}"
SchemaOf = Callable[[Declaration], pa.Schema]


def bind(script: Script, schema_of: SchemaOf, python: bool = False) -> BoundQuery:
    """The query of a script. `schema_of` is called once for each stream and table that the query reads, except tables
    with access methods, whose columns are declared. With `python`, messages say how a Python program declares
    streams."""
    declared = _declared(script)
    _check_sinks(script, declared)
    scope = NameScope(script.text, _sources(script, declared, schema_of, python))
    slide = _slide(script)
    items = items_of(scope, script.select, script.items)
    binder = Binder(scope, aliases_of(items))
    exprs = bind_items(binder, items, slide)
    predicates = _predicates(binder, script)  # after SELECT: the first mistake in the text is reported
    outputs, group = bind_outputs(binder, script.select, items, exprs, slide)
    if group is None and slide is not None:
        window = next(item.window for item in script.sources if item.window and item.window.slide is not None)
        what, instead = (window.kind, "write RANGE") if window.is_borrowed else ("SLIDE", "leave SLIDE out")
        message = (
            f"{what} says how often an aggregate is wanted, and this query has none; "
            f"{instead}, or add GROUP BY or an aggregate"
        )
        raise wrong(script.text, window.place, message)
    if script.partial is not None:
        _check_partial(script, script.partial, scope, items, group)
    return BoundQuery(scope.sources, predicates, outputs, group, scope.in_order(), script.partial is not None)


def _check_partial(
    script: Script, place: Place, scope: NameScope, items: Sequence[Item], group: GroupBy | None
) -> None:
    """Refuse SELECT PARTIAL where nothing can be missing, where a row needs all of its group, and where a column has
    the name of one that it adds."""
    if not any(source.stream.is_asked for source in scope.sources):
        message = (
            "SELECT PARTIAL gives rows before a table has answered, and no table here is asked; leave PARTIAL out, or "
            "declare a table with SCAN or INDEX ON"
        )
        raise wrong(script.text, place, message)
    if group is not None:
        message = "SELECT PARTIAL gives rows of a join before they are complete, and no aggregates; leave PARTIAL out"
        raise wrong(script.text, place, message)
    for item in items:
        if item.name.lower() in (MISSING, MATCH):
            raise scope.wrong(
                item.node,
                f"SELECT PARTIAL adds a column {shown(item.name)} of its own; give this one another name with AS",
            )


def _declared(script: Script) -> dict[str, Declaration]:
    """The declarations by lower-case name."""
    declared: dict[str, Declaration] = {}
    for declaration in script.declarations:
        name = declaration.name.lower()
        if name in declared:
            kind = declared[name].kind.lower()
            raise wrong(
                script.text,
                declaration.place,
                f"there is a {kind} {shown(declaration.name)} already; give this one another name",
            )
        declared[name] = declaration
        if declaration.kind == "STREAM" and declaration.time is None:
            message = (
                f"stream {shown(declaration.name)} has no time column; add "
                "TIMESTAMP BY and a column, or write CREATE TABLE"
            )
            raise wrong(script.text, declaration.place, message)
    return declared


def _check_sinks(script: Script, declared: Mapping[str, Declaration]) -> None:
    sinks = [d.name for d in declared.values() if d.kind == "SINK"]
    wanted = [(script.insert_into, "INSERT INTO", script.insert_place)]
    for d in declared.values():
        wanted += [
            (d.late_into, "LATE INTO", d.places.get("late", d.place)),
            (d.dead_into, "DEAD INTO", d.places.get("dead", d.place)),
        ]
    for name, clause, place in wanted:
        if name is None:
            continue
        target = declared.get(name.lower())
        if target is None:
            hint = (
                did_you_mean(name, sinks)
                if sinks
                else f"; declare it, as in CREATE SINK {shown(name)[1:-1]} USING json OPTIONS (path 'out')"
            )
            raise wrong(script.text, place, f"there is no sink {shown(name)}{hint}")
        if target.kind != "SINK":
            raise wrong(
                script.text,
                place,
                f"{shown(name)} is a {target.kind.lower()}; {clause} needs a sink, declared with CREATE SINK",
            )
        if clause != "INSERT INTO" and script.insert_into is not None and same(name, script.insert_into):
            message = f"sink {shown(name)} takes the results already; {clause} needs a sink of its own"
            raise wrong(script.text, place, message)


def _sources(
    script: Script, declared: Mapping[str, Declaration], schema_of: SchemaOf, python: bool
) -> tuple[BoundSource, ...]:
    streams: dict[str, BoundStream] = {}
    sources: list[BoundSource] = []
    for item in script.sources:
        declaration = _declaration_of(script, item, declared, python)
        if any(same(item.alias, source.alias) for source in sources):
            free = next(name for n in count(2) if not _is_alias(name := f"{item.alias[:30]}{n}", script))
            message = (
                f"{shown(item.alias)} is in FROM twice; give each its own alias, "
                f"as in {shown(item.stream)[1:-1]} AS {shown(free)[1:-1]}"
            )
            raise wrong(script.text, item.place, message)
        if declaration.kind == "TABLE" and item.window is not None:
            how = "whose rows are in every window" if declaration.methods else "is always read whole"
            message = f"{shown(item.stream)} is a table, which has no time and {how}; leave its window out"
            raise wrong(script.text, item.window.place, message)
        name = declaration.name.lower()
        if name not in streams:
            schema = pa.schema(declaration.columns) if declaration.methods else schema_of(declaration)
            streams[name] = _stream(script, declaration, schema)
        clause, time = item.window, streams[name].time
        if clause is not None and clause.time is not None and time is not None and not same(clause.time, time):
            message = (
                f"the windows of {shown(item.stream)} go by its time column, which is {shown(time)}; "
                f"write the window behind it, as in FROM {shown(item.stream)[1:-1]} [TUMBLE 1 MINUTE]"
            )
            raise wrong(script.text, clause.place, message)
        sources.append(BoundSource(item.alias, streams[name], _window(clause)))
    if all(source.stream.is_table for source in sources):
        message = "FROM names only tables; a query needs at least one stream, " + (
            _IN_PYTHON.format("s") if python else "declared with CREATE STREAM ... TIMESTAMP BY"
        )
        raise wrong(script.text, script.sources[0].place, message)
    return tuple(sources)


def _is_alias(name: str, script: Script) -> bool:
    return any(same(name, item.alias) for item in script.sources)


def _declaration_of(script: Script, item: FromItem, declared: Mapping[str, Declaration], python: bool) -> Declaration:
    declaration = declared.get(item.stream.lower())
    if declaration is None:
        readable = [d.name for d in declared.values() if d.kind != "SINK"]
        name = shown(item.stream)[1:-1]
        form = f"; declare it, as in CREATE STREAM {name} USING parquet OPTIONS (path 'data') TIMESTAMP BY ts"
        form = f"; give it to the query: {_IN_PYTHON.format(name)}" if python else form
        hint = did_you_mean(item.stream, readable) if readable else form
        raise wrong(script.text, item.place, f"there is no stream or table {shown(item.stream)}{hint}")
    if declaration.kind == "SINK":
        raise wrong(
            script.text,
            item.place,
            f"{shown(item.stream)} is a sink, which is only written; read from a stream or a table",
        )
    return declaration


def _stream(script: Script, declaration: Declaration, schema: pa.Schema) -> BoundStream:
    fields = [field.with_type(in_one_zone(kept(field.type))) for field in schema]
    kept_schema = with_file_of(pa.schema(fields), schema)
    if declaration.time is None:
        methods = access_methods(script.text, declaration, kept_schema)
        return BoundStream(declaration.name, kept_schema, None, methods=methods)
    return timed(script.text, declaration, kept_schema)


def _window(clause: WindowClause | None) -> Window:
    if clause is None:
        return Window()
    pieces = borrowed(clause.size, clause.size, clause.offset) if clause.kind == "CUMULATE" else None
    return Window(WindowKind.RANGE if clause.is_borrowed else WindowKind(clause.kind), clause.size, pieces)


def _slide(script: Script) -> Slide | None:
    """The one SLIDE of the query, or the slide of its windows with borrowed names."""
    windows = [item.window for item in script.sources if item.window is not None]
    sliding = [window for window in windows if window.slide is not None]
    if not sliding:
        return None
    slide = _slide_of(sliding[0])
    for window in sliding:
        if _slide_of(window).gap != slide.gap:
            message = (
                f"{sliding[0].kind} and {window.kind} with SLIDE are not for one query: TUMBLE, HOP and CUMULATE leave "
                "out a row at the end of a window, SLIDE counts it; write windows of one kind"
            )
            raise wrong(script.text, window.place, message)
        if _slide_of(window) != slide:
            what = "slide or offset; write the same in both" if slide.gap else "one; write the same SLIDE in both"
            raise wrong(script.text, window.place, f"a query has one SLIDE, and another window has a different {what}")
    for window in windows:
        if window.kind == "RANGE" and (window.size % slide.step or not window.size):
            message = (
                "the SLIDE must divide every RANGE; write a RANGE that is a multiple "
                "of it, as in [RANGE 10 MINUTES SLIDE 1 MINUTE]"
            )
            raise wrong(script.text, window.place, message)
    return slide


def _slide_of(window: WindowClause) -> Slide:
    assert window.slide is not None
    return borrowed(window.size, window.slide, window.offset) if window.is_borrowed else Slide(window.slide)


def _predicates(binder: Binder, script: Script) -> tuple[Expr, ...]:
    """The conditions of every ON and of WHERE, split at AND."""
    joins = [(join.args.get("on"), Clause("ON")) for join in script.select.args.get("joins") or []]
    where = script.select.args.get("where")
    conditions = [*joins, (where.this if where is not None else None, Clause("WHERE"))]
    return tuple(
        binder.condition(part, clause)
        for condition, clause in conditions
        if condition is not None
        for part in chain(condition, exp.And)
    )
