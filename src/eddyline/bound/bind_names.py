"""Which column a name means: `alias.column`, or a bare column when only one source has it. Case does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from eddyline.bound.bind_hints import UNSTEADY
from eddyline.bound.expr import Expr, SourceColumn, of_source
from eddyline.bound.model import BoundSource
from eddyline.cql.names import did_you_mean, same
from eddyline.cql.places import Place, place_at, shown, start_of, wrong
from eddyline.errors import ScriptError


@dataclass(frozen=True)
class NameScope:
    """The sources of a query, and its script for error messages."""

    text: str
    sources: tuple[BoundSource, ...]
    named: set[SourceColumn] = field(default_factory=set)
    """The columns that the query has named so far."""

    @cached_property
    def times(self) -> dict[Expr, SourceColumn]:
        """The column of each computed event time, by the expression that computes it."""
        return {
            of_source(source.stream.computed.expr, number): SourceColumn(
                number, str(source.stream.time), source.stream.computed.expr.type
            )
            for number, source in enumerate(self.sources)
            if source.stream.computed is not None
        }

    def in_order(self) -> tuple[SourceColumn, ...]:
        """The columns that the query names, in the same order in every process."""
        return tuple(sorted(self.named, key=lambda column: (column.source, column.name)))

    def place(self, node: exp.Expr) -> Place:
        """Where a node of the query stands."""
        return place_at(self.text, self.offset(node))

    def offset(self, node: exp.Expr) -> int:
        """The character of the script at which a node begins."""
        return start_of(node) or 0

    def wrong(self, node: exp.Expr, message: str) -> ScriptError:
        """The error for a message about a node."""
        return wrong(self.text, self.place(node), message)

    def column(self, node: exp.Column) -> tuple[SourceColumn | None, list[str]]:
        """The column that a node means, None for a name that no source has, and the names of the fields to take from it
        (`alias.column.field` or `column.field`). A name that can be read as `alias.column` is read so."""
        first, *rest = node.parts
        fields = [part.name for part in rest]
        number = next((n for n, source in enumerate(self.sources) if same(source.alias, first.name)), None)
        if fields and number is not None and self._spelling(node, number, fields[0]):
            return self._in_source(node, number, fields[0]), fields[1:]
        found = self._bare(node, first.name)
        if fields and number is not None and found is None:
            return self._in_source(node, number, fields[0]), fields[1:]
        return found, fields

    def _bare(self, node: exp.Column, name: str) -> SourceColumn | None:
        """The column that a name without an alias means; None if no source has it."""
        found = [number for number in range(len(self.sources)) if self._spelling(node, number, name)]
        if len(found) > 1:
            aliases = [_plain(self.sources[number].alias) for number in found]
            ways = " or ".join(f"{alias}.{_plain(name)}" for alias in aliases)
            raise self.wrong(node, f"column {shown(name)} is in {' and '.join(aliases)}; write {ways}")
        return self._in_source(node, found[0], name) if found else None

    def source(self, qualifier: exp.Expr) -> int:
        """The number of the source that an alias names."""
        name = qualifier.name
        for number, source in enumerate(self.sources):
            if same(source.alias, name):
                return number
        for source in self.sources:
            if same(source.stream.name, name):
                alias = _plain(source.alias)
                raise self.wrong(
                    qualifier, f"stream {shown(name)} is called {alias} in this query; write {alias}.column"
                )
        hint = did_you_mean(name, (s.alias for s in self.sources))
        raise self.wrong(qualifier, f"there is no {shown(name)} in FROM{hint}")

    def columns_of(self, number: int) -> list[SourceColumn]:
        """All columns of a source."""
        return [SourceColumn(number, field.name, field.type) for field in self.sources[number].stream.visible]

    def unknown(self, node: exp.Column) -> ScriptError:
        """The error for an unknown name."""
        first, *rest = node.parts
        if rest:
            self.source(first)
        name = first.name
        if name.lower() == "window":
            return self.wrong(node, "a window is no value here; write window.start and window.end")
        if name.lower() in UNSTEADY:
            return self.wrong(node, UNSTEADY[name.lower()])
        if any(same(s.alias, name) for s in self.sources):
            return self.wrong(
                node, f"{shown(name)} is a whole row; write {_plain(name)}.column, or {_plain(name)}.* for all of them"
            )
        quoted = self.text[self.offset(node)] == '"'
        hint = "; a string is written in single quotes" if quoted else _hint(name, self.sources)
        return self.wrong(node, f"there is no column {shown(name)}{hint}")

    def _in_source(self, node: exp.Column, number: int, name: str) -> SourceColumn:
        spelling = self._spelling(node, number, name)
        source = self.sources[number]
        if spelling is None:
            raise self.wrong(node, f"{shown(source.alias)[1:-1]} has no column {shown(name)}{_hint(name, [source])}")
        column = SourceColumn(number, spelling, source.stream.schema.field(spelling).type)
        self.named.add(column)
        return column

    def _spelling(self, node: exp.Column, number: int, name: str) -> str | None:
        """How the schema of a source spells a name."""
        names = self.sources[number].stream.visible.names
        exact = [n for n in names if n == name] or [n for n in names if same(n, name)]
        if len(exact) > 1:
            spelled = " and ".join(shown(n) for n in exact)
            raise self.wrong(
                node, f"{shown(name)} could be any of the columns {spelled}; their names must differ in more than case"
            )
        return exact[0] if exact else None


def _plain(name: str) -> str:
    return shown(name)[1:-1]


def _hint(name: str, sources: Sequence[BoundSource]) -> str:
    """The end of a message about a name that no column of these sources has. It may mean an event time that is an
    expression and has no name."""
    hint = did_you_mean(name, [n for source in sources for n in source.stream.visible.names], columns=True)
    computed = next((c for source in sources if (c := source.stream.computed) is not None and not c.named), None)
    if computed is None or hint.startswith("; did you mean"):
        return hint
    return f"{hint}; to name the event time, write TIMESTAMP BY {shown(computed.written)[1:-1]} AS ts"
