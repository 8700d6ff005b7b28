"""The plan in words: what each source keeps and for how long, and the route a packet of each source takes at first."""

from __future__ import annotations

import pyarrow as pa

from eddyline.bound.expr import Aggregate, Call, Expr, Literal, SourceColumn
from eddyline.bound.model import BoundQuery, Window, WindowKind
from eddyline.bound.slide import Slide
from eddyline.cql.units import duration_text
from eddyline.plan import sharing
from eddyline.plan.bindings import IndexBinding, index_bindings
from eddyline.plan.bounds import UNBOUND
from eddyline.plan.graph import JoinGraph, join_graph
from eddyline.plan.judges import judges
from eddyline.plan.partition import Partitioning
from eddyline.plan.plan import Plan
from eddyline.plan.spill_axis import SpillAxis, spill_axis
from eddyline.plan.steps import KeyAccess, ListAccess, Probe, RangeAccess, Select
from eddyline.plan.text_columns import text_columns
from eddyline.plan.tree import Tree
from eddyline.setting_kinds import size_text
from eddyline.settings import Settings
from eddyline.state.layout import aliases_of

_INFIX = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "||", "like", "ilike"}


def explain(
    query: BoundQuery,
    partitioning: Partitioning | None = None,
    tree: Tree | None = None,
    settings: Settings | None = None,
    prefer: str | None = None,
    owners: tuple[int, ...] | None = None,
) -> str:
    """The plan of a query as text: what Eddyline is going to do. `prefer` is the preference at present, and `owners`
    says which aliases share a SteM, if that is not as in the settings."""
    if owners is None and partitioning is not None and settings is not None:
        owners = sharing.owners(Plan(query), partitioning, settings)
    plan = Plan(query, tree, owners=owners or ())
    lines = [_shape(plan)]
    for number, source in enumerate(query.sources):
        lines += ["", f"{source.alias}: {_source(query, number)}", *(f"  {line}" for line in _details(plan, number))]
    for number, below in enumerate(plan.materialised, len(query.sources)):
        what = "intermediate results, kept until a row in them expires"
        if len(below.children) == 1:
            what = "rows that are joined, in groups"
        lines += ["", f"{span_text(below.span, query)}: {what}"]
        lines += [f"  {line}" for line in (*_indexes(plan, number), *_waiting(plan, below), *_weights(plan, number))]
    if plan.graph.selections:
        lines += ["", "selections in the eddy:"]
        lines += [f"  {text(p, query)}" for p in plan.graph.selections]
    lines += ["", "routes, fixed order:"]
    lines += [
        f"  {route(plan, n)}" for n in range(len(query.sources)) if len(query.sources) == 1 or plan.steps((1 << n, 0))
    ]
    if query.group is not None:
        lines += ["", _grouping(query)]
    if query.partial:
        lines += ["", "partial results: at the end of a batch, rows whose tables have not answered yet"]
    if partitioning is not None and partitioning.slots > 1:
        lines += ["", describe(partitioning, query)]
    if settings is not None and settings.may_spill and settings.memory is not None:
        lines += ["", spilling(spill_axis(plan, settings.groups), query, settings.memory)]
    if prefer is None and settings is not None:
        prefer = settings.prefer
    if prefer:
        first = (f"{query.sources[n].alias} with {text(expr, query)}" for n, expr in judges(plan, prefer).items())
        lines += ["", f"preferred rows come first: {'; '.join(first)}"]
    if plan.graph.never:
        lines += ["", "warning: a condition is constant and not true: there can be no result"]
    return "\n".join(lines)


def describe(partitioning: Partitioning, query: BoundQuery) -> str:
    """Which rows go to which slots, in one line."""
    axes, slots, ways = partitioning.axes, partitioning.slots, dict[str, list[str]]()
    for source, item in enumerate(query.sources):
        keys = [
            "row" if axis.row == source else _key_text(axis.keys[source], query) for axis in axes if axis.has(source)
        ]
        copies = partitioning.copies(source)
        to = "" if copies == 1 else f", to {copies} slots each"
        way = f"by {' and '.join(keys)}{to}" if keys else "to every slot"
        way += ", counted in every slot" if keys and item.window.kind is WindowKind.ROWS else ""
        ways.setdefault(way, []).append(item.alias)
    grid = f" as {' x '.join(str(axis.size) for axis in axes)}" if len(axes) > 1 else ""
    parts = [f"{', '.join(aliases)} {way}" for way, aliases in ways.items()]
    if query.group is not None:
        whole = partitioning.keeps_groups_whole(query)
        parts.append("each group in one slot" if whole else "groups combined from all slots")
    rows = partitioning.estimate
    read = rows.read or 1.0
    parts.append(f"about {rows.shipped / read:.3g} rows shipped and {rows.stored / read:.3g} stored for each row read")
    return f"{slots} slots{grid}, {partitioning.groups} groups: {'; '.join(parts)}"


def spilling(axis: SpillAxis | None, query: BoundQuery, memory: int) -> str:
    """Which rows leave memory together where the state of a slot is larger than `memory`, in one line."""
    if axis is None:
        return "no groups of rows leave memory: there is no join"
    keys = [_key_text(key, query) for key in axis.keys if key is not None]
    by = f"by {' = '.join(dict.fromkeys(keys))}" if keys else "by row"
    lead = [source.alias for number, source in enumerate(query.sources) if axis.has(number)]
    text = f"groups of rows leave memory where it is full ({size_text(memory)} for each slot): {', '.join(lead)} {by}"
    for follow in axis.follow:
        by = "row" if follow.on is None else _key_text(follow.on, query)
        text += f"; {query.sources[follow.source].alias} by {by}"
    return text


def _key_text(key: Expr | None, query: BoundQuery) -> str:
    assert key is not None
    return key.name if isinstance(key, SourceColumn) else text(key, query)


def warnings(query: BoundQuery) -> list[str]:
    """Columns that are text because of a missing value, and sources whose state can never expire."""
    plan = Plan(query)
    return text_columns(query) + [
        f"rows of {source.alias} never expire: give it a RANGE or ROWS window, or bound its time in WHERE"
        for number, source in enumerate(query.sources)
        if _endless(plan, number)
    ]


def _endless(plan: Plan, source: int) -> bool:
    query = plan.query
    streams = [i for i, s in enumerate(query.sources) if not s.stream.is_table]
    if source not in streams or query.sources[source].window.kind is WindowKind.ROWS:
        return False
    return plan.graph.bounds.endless(source, streams)


def _source(query: BoundQuery, number: int) -> str:
    source = query.sources[number]
    stream = source.stream
    return f"table {stream.name}" if stream.is_table else f"stream {stream.name}, {window_text(query, source.window)}"


def window_text(query: BoundQuery, window: Window) -> str:
    """A window, as a script has it."""
    slide = None if query.group is None else query.group.slide
    if window.kind is WindowKind.RANGE and slide is not None and slide.gap:
        return _borrowed_text(slide, window)
    return {
        WindowKind.RANGE: f"RANGE {duration_text(window.size)}",
        WindowKind.ROWS: f"ROWS {window.size}",
        WindowKind.UNBOUNDED: "unbounded",
    }[window.kind]


def _borrowed_text(slide: Slide, window: Window) -> str:
    kind = "HOP" if window.pieces is None else "CUMULATE"
    lengths = f"{kind} {duration_text(slide.step)}, {duration_text(window.size)}"
    if window.size == slide.step:
        lengths = f"TUMBLE {duration_text(window.size)}"
    begins = window.pieces or slide
    offset = (begins.end_of(begins.origin) - window.size) % begins.step
    return lengths + (f" OFFSET {duration_text(offset)}" if offset else "")


def access_lines(query: BoundQuery) -> list[str]:
    """How each table that is asked is reached: a line for each access method."""
    graph = join_graph(query)
    return [
        f"{source.alias}: {line}"
        for number, source in enumerate(query.sources)
        for line in _methods(query, graph, number)
    ]


def _methods(query: BoundQuery, graph: JoinGraph, number: int) -> list[str]:
    """A line for each access method of a source."""
    ways, lines = index_bindings(query, graph, number), []
    for method in query.sources[number].stream.methods:
        mine = [way for way in ways if tuple(column.name for column in way.columns) == method.columns]
        by = " or ".join(dict.fromkeys(_bound_by(way, query) for way in mine))
        index = f"index on ({', '.join(method.columns)})"
        bound = "" if method.is_scan else f", bound by {by}" if by else ", not bound by this query"
        options = f" OPTIONS ({method.options})" if method.options else ""
        lines.append(f"{'scan' if method.is_scan else index}{options}{bound}")
    return lines


def _bound_by(way: IndexBinding, query: BoundQuery) -> str:
    return " and ".join(text(binding.expr, query) for binding in way.bound_by)


def _details(plan: Plan, number: int) -> list[str]:
    query, layout = plan.query, plan.layouts[number]
    lines = [f"access: {line}" for line in _methods(query, plan.graph, number)]
    lines += [f"filter {text(p, query)}" for p in plan.graph.filters[number]]
    if plan.owners[number] != number:
        lines.append(f"rows and indexes are those in the SteM of {query.sources[plan.owners[number]].alias}")
    else:
        kept = ", ".join(text(e, query) for e in layout.stored)
        lines += [*_indexes(plan, number), f"keeps {kept}" if kept else "keeps no payload"]
        others = [query.sources[alias].alias for alias in aliases_of(number, plan.owners) if alias != number]
        lines += [f"one SteM with {', '.join(others)}: a row stays until none of them needs it"] if others else []
    if _endless(plan, number):
        lines.append("warning: rows never expire; give it a RANGE or ROWS window, or bound its time in WHERE")
    elif layout.timed:
        lines.append(_lifetime(plan, number))
    return lines


def _indexes(plan: Plan, number: int) -> list[str]:
    query, layout = plan.query, plan.layouts[number]
    if not layout.probed:
        return ["no index: nothing probes it"] if len(query.sources) > 1 else []
    lines = [f"hash index on {', '.join(text(e, query) for e in on)}" for on in layout.indexes]
    return lines + [f"sorted index on {text(e, query)}" for e in layout.order_keys]


def _waiting(plan: Plan, below: Tree) -> list[str]:
    """The selections that a late operator leaves to the operators above it."""
    left = [
        i for i, needed in enumerate(plan.selections) if not needed & ~below.span and not plan.done[below.span] >> i & 1
    ]
    return [f"not yet selected by {text(plan.graph.selections[i], plan.query)}" for i in left]


def _weights(plan: Plan, number: int) -> list[str]:
    """The keys by which an operator groups, and the aggregates that it adds up."""
    query, of = plan.query, plan.grouped.get(number)
    if of is None or query.group is None:
        return []
    states = ", ".join(text(query.group.aggregates[n], query) for n in of.aggregates)
    kept = f"keeps for each a weight{' and ' if states else ''}{states}"
    if not of.combines:
        return [kept]
    by = [*dict.fromkeys(text(e, query) for e in (*of.keys, *of.values, *of.columns))]
    by += [f"time of {query.sources[s].alias}" for s in of.times]
    by += [f"row of {query.sources[s].alias}" for s in of.rows]
    return [f"groups by {', '.join([*by, 'boundaries'])}", kept]


def _shape(plan: Plan) -> str:
    sources = len(plan.query.sources)
    if not plan.materialised:
        return f"multi-way join of {sources} sources" if sources > 1 else "one source, no join"
    binary = all(len(tree.children) == 2 for tree in (*plan.materialised, plan.tree))
    tree = plan.tree.text([s.alias for s in plan.query.sources])
    return f"{'binary' if binary else 'hybrid'} tree {tree} of {sources} sources"


def _lifetime(plan: Plan, number: int) -> str:
    sources = plan.query.sources
    if sources[number].window.kind is WindowKind.ROWS:
        return f"expires after {sources[number].window.size} newer rows"
    others = [i for i, s in enumerate(sources) if i != number and not s.stream.is_table]
    limits = {i: plan.graph.bounds.most[i][number] for i in others if plan.graph.bounds.most[i][number] < UNBOUND}
    if not limits:
        return "expires at once: no other stream joins it"
    sliding = plan.query.group is not None and plan.query.group.slide is not None  # T - W < ts: at age W it is out
    return f"expires {', '.join(_expiry(limit + sliding, sources[i].alias) for i, limit in limits.items())}"


def _expiry(limit: int, other: str) -> str:
    """When a row expires that joins rows of the stream `other` only up to `limit` later."""
    if limit > 0:
        return f"{duration_text(limit)} behind {other}"
    return f"as soon as {other} has passed it" if limit == 0 else f"{duration_text(-limit)} before {other} reaches it"


def route(plan: Plan, source: int) -> str:
    """The steps of a fixed router for the rows of one source."""
    query, words = plan.query, [plan.query.sources[source].alias]
    signature = 1 << source, 0
    probes, selections = [], 0
    while steps := plan.steps(signature):
        words.append(step_text(steps[0], query))
        if isinstance(steps[0], Select):
            selections += 1
        else:
            probes.append(steps[0].access)
        signature = plan.after(signature, steps[0])
    kinds = {"key": KeyAccess, "range": RangeAccess, "list": ListAccess}
    cost = [(sum(isinstance(p, kind) for p in probes), f"by {name}") for name, kind in kinds.items()]
    counted = [f"{n} probe{'s' * (n > 1)} {how}" for n, how in cost if n]
    counted += [f"{selections} selection{'s' * (selections > 1)}"] if selections else []
    return " -> ".join(words) + (f"   ({', '.join(counted)})" if counted else "")


def step_text(step: Probe | Select, query: BoundQuery) -> str:
    """One step, as a route shows it."""
    if isinstance(step, Select):
        return f"[{text(step.predicate, query)}]"
    target = span_text(step.span, query)
    if isinstance(step.access, KeyAccess):
        pairs = zip(step.access.partner_on, step.access.on, strict=True)
        return f"{target} by {' and '.join(f'{text(a, query)} = {text(b, query)}' for a, b in pairs)}"
    if isinstance(step.access, RangeAccess):
        on = text(step.access.on, query)
        limits = [f"{on} {op} {text(key, query)}{_plus(offset)}" for op, _, key, offset in step.access.limits]
        return f"{target} by {' and '.join(limits)}"
    return f"{target} by list"


def span_text(span: int, query: BoundQuery) -> str:
    """The alias of a single source, or the aliases of a larger span in parentheses."""
    aliases = [source.alias for number, source in enumerate(query.sources) if span >> number & 1]
    return aliases[0] if len(aliases) == 1 else f"({' '.join(aliases)})"


def _plus(offset: int) -> str:
    return f" {'+' if offset > 0 else '-'} {abs(offset)}" if offset else ""


def _grouping(query: BoundQuery) -> str:
    group = query.group
    assert group is not None
    keys = ", ".join(text(k, query) for k in group.keys) or "one group"
    when = "once, at the end" if group.slide is None else f"every {duration_text(group.slide.step)}"
    return f"group by {keys}: {', '.join(text(a, query) for a in group.aggregates) or 'no aggregate'}, {when}"


def text(expr: Expr, query: BoundQuery) -> str:
    """An expression, near enough to SQL to be recognised."""
    if isinstance(expr, SourceColumn):
        column = expr.name if expr.name.isidentifier() else f'"{expr.name}"'
        return f"{query.sources[expr.source].alias}.{column}" if expr.source >= 0 else f"{expr.name}()"
    if isinstance(expr, Literal):
        if pa.types.is_duration(expr.type) and isinstance(expr.value, int):
            return duration_text(expr.value)
        return "NULL" if expr.value is None else repr(expr.value)
    if isinstance(expr, Aggregate):
        inner = "*" if expr.arg is None else ("DISTINCT " if expr.distinct else "") + text(expr.arg, query)
        more = "" if expr.parameter is None else f", {expr.parameter}"
        return f"{expr.name.upper()}({inner}{more})"
    return _call_text(expr, query)


def _call_text(expr: Call, query: BoundQuery) -> str:
    args = [text(a, query) for a in expr.args]
    if expr.name in _INFIX and len(args) > 1:
        sides = [
            f"({a})" if isinstance(e, Call) and e.name in _INFIX else a for a, e in zip(args, expr.args, strict=True)
        ]
        return f" {expr.name.upper()} ".join(sides)
    if expr.name == "in":
        return f"{args[0]} IN ({', '.join([*([expr.variant] if expr.variant else []), *args[1:]])})"
    if expr.name in ("is null", "is not null"):
        return f"{args[0]} {expr.name.upper()}"
    if expr.name == "cast":
        return f"CAST({args[0]} AS {expr.variant or expr.type})"
    words = [*([expr.variant] if expr.variant else []), *args]
    return f"{expr.name}({', '.join(words)})"
