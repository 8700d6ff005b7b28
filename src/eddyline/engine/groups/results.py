"""Results: turn complete tuples into rows of the SELECT list, or into combinations that a group-by counts.

The rows of a group-by wait here for the watermark: a slide boundary is emitted when no further tuple can count at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, evaluate
from eddyline.bound.expr import Expr, SourceColumn
from eddyline.bound.model import BoundQuery, GroupBy, WindowKind
from eddyline.codec import Snapshot
from eddyline.engine.groups.clusters import Clusters
from eddyline.engine.groups.group_by import Grouping, GroupingSnapshot
from eddyline.engine.groups.match_key import MatchKey
from eddyline.engine.groups.panes import Panes
from eddyline.engine.tuning import ENGINE, EngineTuning
from eddyline.errors import InternalError
from eddyline.plan.bounds import FOREVER
from eddyline.routing.boundaries import boundaries
from eddyline.routing.packet import Packet
from eddyline.routing.rows_windows import RowsWindow
from eddyline.state.arena import Arena
from eddyline.state.part import Cut, Named, Part, Versioned, named, number_of, of_number
from eddyline.state.rows import Rows

Times = NDArray[np.int64]

Values = Mapping[Expr, pa.Array]


class GroupsSnapshot(Snapshot, frozen=True):
    """A group-by, and the tuples that wait for slide boundaries, by their names on the shelf."""

    grouping: GroupingSnapshot
    waiting: tuple[str, ...]
    committed: tuple[str, ...]


class Results(Part):
    """Takes complete tuples and returns result rows. The results since the last call of `drain` are in `_out`."""

    name, snapshot = "results", GroupsSnapshot

    def __init__(self) -> None:
        self._out: list[pa.RecordBatch] = []

    @property
    def next(self) -> int | None:
        """The first slide boundary, in microseconds, that is not emitted yet; None without slides."""
        return None

    @property
    def committed(self) -> tuple[Panes, ...]:
        """The cells of groups at the last commit; they are never changed."""
        return ()

    def add(self, packet: Packet, values: Values, rows: Sequence[Rows]) -> None:
        """Complete tuples, the columns that they need, and the rows of the sources, which their numbers refer to."""
        raise NotImplementedError

    def advance(self, watermark: int) -> None:
        """Advance to this watermark of the query: everything below it is final."""

    def end(self, latest: int | None) -> None:
        """Flush at the end of the streams; `latest` is the newest time of any readable row."""

    def drain(self) -> list[pa.RecordBatch]:
        """The result rows since the last call."""
        out, self._out = self._out, []
        return out

    def wind_back(self) -> None:
        self._out = []

    def saved(self) -> GroupsSnapshot | None:
        if self._out:
            raise InternalError("results were not drained before the slot was saved")
        return None


class RowResults(Results):
    """SELECT without aggregates: each complete tuple is a row. With SELECT PARTIAL, each partial one is, too."""

    def __init__(self, query: BoundQuery, errors: ErrorCount) -> None:
        super().__init__()
        self._outputs, self._schema, self._errors = query.outputs, query.schema, errors
        self._aliases = [source.alias for source in query.sources]
        self._key = MatchKey(query) if query.partial else None

    def add(self, packet: Packet, values: Values, rows: Sequence[Rows]) -> None:
        missing = [alias for source, alias in enumerate(self._aliases) if source not in packet.rows]
        errors = ErrorCount() if missing else self._errors  # those of the full row count
        arrays = []
        for output, field in zip(self._outputs, self._schema, strict=False):
            array = evaluate(output.expr, values, packet.size, errors)
            arrays.append(array if array.type == field.type else array.cast(field.type))
        if self._key is not None:
            times = {s: rows[s].times.values[of] for s, of in packet.rows.items() if rows[s].timed}
            text = pa.scalar(", ".join(missing) or None, pa.string())
            arrays += [pa.repeat(text, packet.size), self._key.of(values, times)]
        self._out.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))


class GroupResults(Results):
    """SELECT with aggregates: each complete tuple counts at the slide boundaries whose windows contain all its
    components.

    With RANGE and UNBOUNDED windows these boundaries are known at once: from the first at or after the tuple's newest
    time to the last before a component leaves its window. With a ROWS window the last one is not known yet; such tuples
    wait and are checked again at every boundary.
    """

    def __init__(
        self,
        query: BoundQuery,
        group: GroupBy,
        rows_windows: Mapping[int, RowsWindow],
        errors: ErrorCount,
        partial: bool = False,
        tuning: EngineTuning = ENGINE,
        clusters: Clusters | None = None,
        *,
        arena: Arena,
    ) -> None:
        super().__init__()
        self._arena = arena
        self._query, self._slide, self._rows_windows = query, group.slide, rows_windows
        self._beyond = 0
        """How long after the newest row windows may end that are emitted at the end of the streams."""
        if group.slide is not None and group.slide.gap:
            self._beyond = max(s.window.size for s in query.sources if s.window.kind is WindowKind.RANGE)
        self._clusters = clusters
        self._grouping = Grouping(query, errors, partial, tuning, clusters)
        self._waiting = Versioned[tuple[_WaitingTuples, ...]](())

    def add(self, packet: Packet, values: Values, rows: Sequence[Rows]) -> None:
        classes = () if self._clusters is None else self._clusters.of_tuples(packet, rows)
        if self._slide is None:
            nowhere = np.zeros(packet.size, np.int64)
            self._grouping.add(values, packet.size, nowhere, nowhere, classes=classes)
            return
        first, last = boundaries(self._query, self._slide, rows, packet.rows, packet.size)
        if not self._rows_windows:
            self._grouping.add(values, packet.size, first, last, packet.carried, classes)
            return
        places = {s: rows[s].ordinals(packet.rows[s]) for s in self._rows_windows}
        self._waiting.now = (*self._waiting.now, _WaitingTuples(dict(values), first, last, places))

    @property
    def committed(self) -> tuple[Panes, ...]:
        return self._grouping.committed

    def advance(self, watermark: int) -> None:
        if self._slide is not None:
            self._emit(self._slide.last_upto(watermark - 1))

    def end(self, latest: int | None) -> None:
        if self._slide is None:
            self._out += self._grouping.emit(0)
        elif latest is not None:
            self._emit(self._slide.first_from(latest + self._beyond))

    def _emit(self, upto: int) -> None:
        while (waiting := self._waiting.now) and (at := min(int(w.first.min()) for w in waiting)) <= upto:
            self._waiting.now = tuple(w for w in (self._count(w, at) for w in waiting) if w is not None)
        self._out += self._grouping.emit(upto)

    def _count(self, waiting: _WaitingTuples, at: int) -> _WaitingTuples | None:
        """Count the tuples that are in their windows at this boundary; keep those that may be in them at the next."""
        assert self._slide is not None
        now = np.array([at])
        alive = np.ones(waiting.first.size, np.bool_)
        for source, window in self._rows_windows.items():
            alive &= waiting.places[source] >= window.least(now)
        here = alive & (waiting.first <= at) & (waiting.last >= at)
        if here.any():
            some = waiting.only(here)
            boundary = np.full(some.first.size, at)
            self._grouping.add(some.values, some.first.size, boundary, boundary)
        alive &= waiting.last > at
        if not alive.any():
            return None
        rest = waiting if alive.all() else waiting.only(alive)
        return _WaitingTuples(rest.values, np.maximum(rest.first, at + self._slide.step), rest.last, rest.places)

    def commit(self, cut: Cut) -> None:
        self._grouping.commit()
        self._waiting.commit()

    def wind_back(self) -> None:
        super().wind_back()
        self._grouping.wind_back()
        self._waiting.wind_back()

    def saved(self) -> GroupsSnapshot:
        super().saved()
        shelf = self._arena.shelf

        def names(waiting: tuple[_WaitingTuples, ...]) -> tuple[str, ...]:
            return tuple(shelf.put(w, lambda w: [w.batch]) for w in waiting)

        return GroupsSnapshot(self._grouping.saved(shelf), *map(names, self._waiting.saved))

    def restore(self, saved: GroupsSnapshot) -> None:
        shelf = self._arena.shelf

        def found(names: tuple[str, ...]) -> tuple[_WaitingTuples, ...]:
            return tuple(shelf.get(name, lambda batches: self._from_batch(batches[0])) for name in names)

        self._grouping.restore(saved.grouping, shelf)
        self._waiting.restore((found(saved.waiting), found(saved.committed)))

    @property
    def next(self) -> int | None:
        return None if self._slide is None else max(self._slide.at(self._grouping.next), -FOREVER)

    def durable(self, cut: Cut) -> Named:
        """The next boundary, cells, and tuples that wait."""
        next, panes = self._grouping.small_state()
        waiting = [_without_dictionaries(w.batch) for w in self._waiting.now]
        if waiting:  # in one piece
            waiting = pa.Table.from_batches(waiting).combine_chunks().to_batches()
        cells = [("panes", rows) for rows in panes]
        return [("boundary", of_number(next)), *cells, *(("waiting", rows) for rows in waiting)]

    def restore_durable(self, own: Named, any_slot: Named) -> None:
        self._grouping.restore_small_state(number_of(named(any_slot, "boundary"), int), named(own, "panes"))
        self._waiting.start(tuple(map(self._from_batch, named(own, "waiting"))))

    def _from_batch(self, batch: pa.RecordBatch) -> _WaitingTuples:
        values: dict[Expr, pa.Array] = {}
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            if name.startswith("value "):
                source, column = name.removeprefix("value ").split(" ", 1)
                type = self._query.sources[int(source)].stream.schema.field(column).type
                values[SourceColumn(int(source), column, type)] = array
        first, last = batch.column("first").to_numpy(), batch.column("last").to_numpy()
        places = {source: batch.column(f"place {source}").to_numpy() for source in self._rows_windows}
        return _WaitingTuples(values, first, last, places)

    @property
    def state_rows(self) -> int:
        return self._grouping.rows + sum(w.first.size for w in self._waiting.now)

    @property
    def state_bytes(self) -> int:
        return self._grouping.memory_bytes + sum(w.nbytes for w in self._waiting.now)


class _WaitingTuples:
    """Complete tuples of a query with ROWS windows, until they have left their windows; immutable."""

    def __init__(self, values: dict[Expr, pa.Array], first: Times, last: Times, places: dict[int, Times]) -> None:
        self.values, self.first, self.last, self.places = values, first, last, places

    def only(self, which: NDArray[np.bool_]) -> _WaitingTuples:
        kept = pa.array(which)
        values = {expr: array.filter(kept) for expr, array in self.values.items()}
        return _WaitingTuples(
            values, self.first[which], self.last[which], {s: p[which] for s, p in self.places.items()}
        )

    @property
    def batch(self) -> pa.RecordBatch:
        """The tuples as a record batch. The names of value columns tell the source and the column."""
        columns = {"first": pa.array(self.first), "last": pa.array(self.last)}
        columns |= {f"place {source}": pa.array(places) for source, places in self.places.items()}
        for expr, array in self.values.items():
            assert isinstance(expr, SourceColumn)
            columns[f"value {expr.source} {expr.name}"] = array
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    @property
    def nbytes(self) -> int:
        arrays = sum(int(array.nbytes) for array in self.values.values())
        return arrays + 8 * self.first.size * (2 + len(self.places))


def results_of(
    query: BoundQuery,
    rows_windows: Mapping[int, RowsWindow],
    errors: ErrorCount,
    partial: bool,
    arena: Arena,
    tuning: EngineTuning = ENGINE,
    clusters: Clusters | None = None,
) -> Results:
    """The results of a query. With `partial`, aggregates are emitted as cells, for `partial.combine`."""
    if query.group is None:
        return RowResults(query, errors)
    return GroupResults(query, query.group, rows_windows, errors, partial, tuning, clusters, arena=arena)


def _without_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Decode dictionaries: each batch has its own, so batches with dictionaries cannot be concatenated."""
    arrays = [a.dictionary_decode() if pa.types.is_dictionary(a.type) else a for a in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
