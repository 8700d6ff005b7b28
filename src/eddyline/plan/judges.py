"""Which rows a preference prefers (paper 001, sections 4.1 and 4.6).

The condition is over one source. Where WHERE equates all its columns with those of another source, rows of that source
are preferred, too: the condition is judged with its values. So a condition over the key of a table that is asked is
judged on the rows of the stream that ask for the key.

A row is judged by values that its SteM keeps. Rows of a table that is read whole are not judged: they are there before
the streams start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from eddyline.bound.bind_expr import Binder
from eddyline.bound.bind_hints import Clause
from eddyline.bound.bind_names import NameScope
from eddyline.bound.expr import Call, Expr, SourceColumn, columns_of, sources_of
from eddyline.bound.functions import TypeMismatch, cast
from eddyline.bound.model import BoundQuery
from eddyline.cql.condition import parse_condition
from eddyline.errors import ScriptError, SettingError
from eddyline.plan.bindings import stands_for
from eddyline.plan.plan import Plan
from eddyline.plan.preference import NO_PREFERENCE, Preference

Judges = Mapping[int, Expr]
"""By source, the condition that its preferred rows satisfy."""


class Preferences:
    """The preferences of a run, one after the other. Any thread may change them; the next batch follows."""

    def __init__(self, plan: Plan, text: str | None) -> None:
        self._plan, self._now = plan, NO_PREFERENCE
        self.change(text)

    def change(self, text: str | None) -> None:
        """From the next batch on other rows are preferred; None: none. SettingError if the condition is wrong."""
        text = (text or "").strip()
        judges(self._plan, text)
        self.text = text

    def at(self, batch: int) -> Preference:
        """The preference of a batch, which begins."""
        text = self.text
        if text != self._now.text:
            self._now = Preference(text, batch)
        return self._now


@lru_cache(maxsize=32)
def judges(plan: Plan, text: str) -> Judges:
    """The condition for each source whose rows can be preferred; SettingError if there is none."""
    if not text:
        return {}
    condition = _bound(plan.query, text)
    sources = sources_of(condition)
    if len(sources) != 1:
        what = "names no column" if not sources else "names columns of several sources"
        raise SettingError(f"prefer: {_shown(text)} {what}; write a condition over one stream or table")
    (mine,) = sources
    found = {mine: condition}
    for other in range(len(plan.query.sources)):
        seen = _seen_from(plan, condition, mine, other) if other != mine else None
        if seen is not None:
            found[other] = seen
    found = {source: expr for source, expr in found.items() if _can_judge(plan, source, expr)}
    if not found:
        raise SettingError(f"prefer: {_why_not(plan, condition)}")
    return found


def _bound(query: BoundQuery, text: str) -> Expr:
    try:
        return Binder(NameScope(text, query.sources)).condition(parse_condition(text), Clause("prefer"))
    except ScriptError as error:
        raise SettingError(f"prefer: {_shown(text)}: {error.message}") from None


def _seen_from(plan: Plan, condition: Expr, mine: int, other: int) -> Expr | None:
    """The condition over the values of another source that WHERE equates with its columns."""
    values: dict[SourceColumn, Expr] = {}
    for equality in plan.graph.equalities:
        if {equality.left, equality.right} == {mine, other}:
            side, _, theirs = equality.seen_from(mine)
            for column in columns_of(condition):
                if stands_for(side, column):
                    try:
                        values[column] = theirs if theirs.type == column.type else cast(theirs, column.type, try_=True)
                    except TypeMismatch:
                        continue
    return _with(condition, values) if columns_of(condition) <= values.keys() else None


def _with(expr: Expr, values: Mapping[SourceColumn, Expr]) -> Expr:
    """The expression with these values for columns."""
    if isinstance(expr, SourceColumn):
        return values.get(expr, expr)
    return replace(expr, args=tuple(_with(arg, values) for arg in expr.args)) if isinstance(expr, Call) else expr


def _can_judge(plan: Plan, source: int, condition: Expr) -> bool:
    stream = plan.query.sources[source].stream
    return (stream.is_asked or not stream.is_table) and columns_of(condition) <= {*plan.layouts[source].stored}


def _why_not(plan: Plan, condition: Expr) -> str:
    (number,) = sources_of(condition)
    source = plan.query.sources[number]
    if source.stream.is_table and not source.stream.is_asked:
        return f"the rows of table {source.alias} are read before the streams start; prefer rows of a stream"
    lost = min(c.name for c in columns_of(condition) - {*plan.layouts[number].stored})
    return f"the query does not keep {source.alias}.{lost}; name it in SELECT, or prefer rows by another column"


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return f"'{line}'" if len(line) <= 60 else f"'{line[:60]}...'"
