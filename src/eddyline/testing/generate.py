"""A random case from a seed: schemas, join graph, windows, conditions, aggregates, rows, cuts, settings.

The size of the result is steered, since a fuzzer that compares empty results finds nothing: rows per stream and the sizes
of the key pools are chosen so that the estimate of the joined rows lies between a few dozen and a few thousand.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from eddyline.testing import domains, predicates, timeline
from eddyline.testing.case import Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.predicates import Alias

MOST_COMBINATIONS = 3_000
SHAPES = ["chain", "chain", "star", "star", "tree", "cycle", "clique", "multi", "theta", "cross", "loose"]
SLIDES = [1, 2, 5, 10]
Edge = tuple[int, int, int]
"""Two places in FROM and the domain they are joined on; -1 for an edge that is only a theta condition."""


@dataclass
class _Sized:
    """What steers the size: rows per place in FROM, key pools, whether keys are skewed."""

    rows: list[int]
    pools: list[int]
    families: list[str]
    skew: bool


def generate(seed: int) -> Case:
    """The case of this seed."""
    return _Generator(random.Random(seed)).case()


class _Generator:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.features: list[str] = []
        self.clock = timeline.timeline(rng)
        self.combinations = 0.0
        self.places = 1
        self.nulls = rng.choice([0.0, 0.0, 0.05, 0.2])

    def case(self) -> Case:
        rng = self.rng
        places = rng.choices(range(1, 9), [8, 24, 24, 16, 10, 8, 5, 5])[0]
        self.places = places
        shape = rng.choice(SHAPES) if places > 1 else "single"
        self._note(f"{places} sources", shape)
        wide = self.clock.horizon * self.clock.step
        width = max(self.clock.step, int(wide * rng.uniform(0.2, 1.3) if places <= 4 else wide * rng.uniform(0.7, 1.5)))
        width -= width % self.clock.step
        filters = rng.choices([0, 1, 2, 3], [5, 4, 2, 1] if places <= 4 else [8, 3, 0, 0])[0]
        sized = self._families(places)
        edges = self._edges(shape, places, len(sized.pools))
        share = min(1.0, width / wide)
        share = max(0.02, places * share ** (places - 1) - (places - 1) * share**places) * 0.5**filters
        share *= (1 - self.nulls) ** (2 * len(edges))
        self._size(sized, edges, share)
        streams, aliases, tables, rows, times = self._streams(places, sized)
        aggregate = rng.random() < 0.4
        slide = self._slide(width) if aggregate and rng.random() < 0.65 else None
        sources = [self._window(a, width, slide, len(rows.get(a.stream, ()))) for a in aliases]
        aliases = [
            self._ordered(a) if s.window.startswith("ROWS") else a for a, s in zip(aliases, sources, strict=True)
        ]
        if slide and not any("SLIDE" in s.window for s in sources):
            slide = None
        where = self._where(edges, aliases, shape, filters, width)
        select = self._select(aliases, aggregate, slide, where, sources)
        batches = self._batches(streams, rows, times, wide)
        return Case(tuple(streams), select, batches, tables, self._settings(), tuple(dict.fromkeys(self.features)))

    def _note(self, *features: str) -> None:
        self.features.extend(features)

    # how much there is

    def _families(self, places: int) -> _Sized:
        rng = self.rng
        usual = ["int", "int", "number", "string", "string"]
        families = [rng.choice([*usual, *domains.TYPES]) for _ in range(rng.choice([1, 1, 2, 3]))]
        most = {1: 80, 2: 45, 3: 32, 4: 22, 5: 16}.get(places, 11)
        rows = [rng.randint(max(3, most // 3), most) for _ in range(places)]
        pools = [2 if f == "bool" else max(1, int(most / rng.uniform(0.8, 3.0))) for f in families]
        skew = rng.random() < 0.25
        self._note(*(f"key {f}" for f in families), *(["skew"] if skew else []))
        return _Sized(rows, pools, families, skew)

    def _edges(self, shape: str, places: int, kinds: int) -> list[Edge]:
        rng = self.rng

        def kind() -> int:
            return rng.randrange(kinds)

        chain = [(i, i + 1, kind()) for i in range(places - 1)]
        if shape == "star":
            return [(0, i, kind()) for i in range(1, places)]
        if shape == "tree":
            return [(rng.randrange(i), i, kind()) for i in range(1, places)]
        if shape == "cycle":
            return [*chain, (places - 1, 0, kind())] if places > 2 else chain
        if shape == "clique":
            one = kind()
            extra = [(i, j, one) for i in range(places) for j in range(i + 2, places)]
            return [*((i, j, one) for i, j, _ in chain), *extra]
        if shape == "multi":
            return [*chain, *((i, i + 1, kind()) for i in range(places - 1) if rng.random() < 0.6)]
        if shape == "theta":
            return [(i, j, k if rng.random() < 0.5 else -1) for i, j, k in chain]
        if shape == "cross":
            return [e for e in chain if rng.random() < 0.5]
        if shape == "loose":
            return [(rng.randrange(i), i, kind() if rng.random() < 0.8 else -1) for i in range(1, places)]
        return chain

    def _size(self, sized: _Sized, edges: Sequence[Edge], share: float) -> None:
        """Change rows and pools until the estimate is neither too large nor, as far as that goes, too small."""
        for _ in range(60):
            estimate = self.combinations = self._estimate(sized, edges)
            if estimate > MOST_COMBINATIONS:
                if sized.skew and estimate > 4 * MOST_COMBINATIONS:
                    sized.skew = False
                elif max(sized.rows) > 4:
                    sized.rows = [max(3, int(n * 0.85)) for n in sized.rows]
                else:
                    sized.pools = [p + 1 for p in sized.pools]
            elif estimate * share < 80 and any(p > 1 for p in sized.pools):
                sized.pools = [max(1, int(p * 0.8)) for p in sized.pools]
            else:
                return

    @staticmethod
    def _estimate(sized: _Sized, edges: Sequence[Edge]) -> float:
        estimate = float(math.prod(sized.rows))
        joined: dict[int, set[int]] = {}
        for left, right, kind in edges:
            if kind >= 0:
                joined.setdefault(kind, set()).update((left, right))
            else:
                estimate *= 0.5
        for kind, members in joined.items():
            size = sized.pools[kind]
            if sized.families[kind] == "bool":
                size = 2
            weights = [(i + 1) ** (1 / 3) - i ** (1 / 3) for i in range(size)] if sized.skew else [1.0] * size
            total = sum(weights)
            estimate *= sum((w / total) ** len(members) for w in weights)
        return estimate

    # streams and rows

    def _streams(
        self, places: int, sized: _Sized
    ) -> tuple[
        list[StreamDecl], list[Alias], dict[str, pa.RecordBatch], dict[str, pa.RecordBatch], dict[str, list[int | None]]
    ]:
        rng = self.rng
        pools = [domains.domain(rng, f, n) for f, n in zip(sized.families, sized.pools, strict=True)]
        nulls = self.nulls
        dead = 0.05 if rng.random() < 0.1 else 0.0
        self._note(*(["nulls"] if nulls else []), *(["dead rows"] if dead else []))
        streams: list[StreamDecl] = []
        tables: dict[str, pa.RecordBatch] = {}
        rows: dict[str, pa.RecordBatch] = {}
        times: dict[str, list[int | None]] = {}
        aliases: list[Alias] = []
        for place in range(places):
            name = f"s{place}"
            if streams and rng.random() < 0.08:
                declared = rng.choice(streams)
                self._note("self-join")
            else:
                is_table = bool(place) and rng.random() < 0.1
                count = 0 if rng.random() < 0.008 else sized.rows[place]
                columns = self._columns(pools, count, nulls, sized.skew)
                time = None
                if is_table:
                    self._note("static table")
                else:
                    time = rng.choice(["ts", "ts", "at"])
                    times[name] = self.clock.times(rng, count, dead)
                    columns.insert(rng.randint(0, len(columns)), (time, domains.make(times[name], self._time_type())))
                batch = pa.RecordBatch.from_arrays([c for _, c in columns], names=[n for n, _ in columns])
                lateness = rng.choice([0, 1, 2, 5, 20]) * self.clock.step if time else 0
                declared = StreamDecl(name, batch.schema, time, lateness, rng.random() < 0.3)
                (tables if is_table else rows)[name] = batch
                streams.append(declared)
                self._note(*(["empty stream"] if not count else []), *(["lateness"] if lateness else []))
            keys = tuple(f"k{i}" for i in range(len(pools)))
            alias = chr(ord("a") + place) if rng.random() < 0.8 else f"q{place}"
            columns_of = {f.name: f.type for f in declared.schema}
            aliases.append(Alias(alias, declared.name, columns_of, keys, declared.time, self._style(places)))
        return streams, aliases, tables, rows, times

    def _style(self, places: int) -> str:
        """Names are mostly written as declared; case does not matter, and one source needs no alias."""
        style = self.rng.choices(["", "upper", "bare"], [20, 1, 6 if places == 1 else 0])[0]
        self._note(*([f"names {style}"] if style else []))
        return style

    def _columns(
        self, pools: Sequence[domains.Domain], count: int, nulls: float, skew: bool
    ) -> list[tuple[str, pa.Array]]:
        rng = self.rng
        columns = [
            (f"k{i}", domains.column(rng, pool, domains.concrete(rng, pool.family), count, nulls, skew))
            for i, pool in enumerate(pools)
        ]
        payload = {
            "x": "int",
            "y": "float",
            "s": "string",
            "d": "date",
            "f": "bool",
            "m": "decimal",
            "w": "timestamp",
            "z": "number",
            "v": "binary",
        }
        for name in rng.sample(list(payload), rng.randint(1, 4)):
            pool = domains.domain(rng, payload[name], rng.randint(2, 20))
            columns.append((name, domains.column(rng, pool, domains.concrete(rng, payload[name]), count, nulls, False)))
        if rng.random() < 0.1:
            self._note("nested payload")
            lists = pa.array([[i, None][: rng.randint(0, 2)] for i in range(count)], pa.list_(pa.int64()))
            structs = pa.array(
                [{"a": i, "b": "x" * (i % 3)} for i in range(count)], pa.struct([("a", pa.int64()), ("b", pa.string())])
            )
            columns.append(("p", rng.choice([lists, structs])))
        for _, values in columns:
            self._note(f"type {values.type}")
        return columns

    def _time_type(self) -> pa.DataType:
        units = ["us", "us", "us", "ns"]
        units += ["ms"] if self.clock.step % 1_000 == 0 else []
        units += ["s"] if self.clock.step % 1_000_000 == 0 else []
        return pa.timestamp(
            self.rng.choice(units), "UTC" if self.clock.base > 10**15 and self.rng.random() < 0.15 else None
        )

    # the query

    def _slide(self, width: int) -> int:
        """A slide with at most some forty boundaries in the horizon."""
        step = self.clock.step
        fits = [s * step for s in SLIDES if self.clock.horizon <= 40 * s] or [SLIDES[-1] * step]
        self._note("slide")
        return self.rng.choice(fits)

    def _window(self, alias: Alias, width: int, slide: int | None, rows: int) -> FromPart:
        rng = self.rng
        if alias.time is None:
            return FromPart(alias.stream, alias.name)
        kind = rng.choices(["RANGE", "ROWS", "UNBOUNDED", ""], self._window_mix())[0]
        clause = ""
        if kind == "RANGE":
            size = width if rng.random() < 0.6 else max(0, int(width * rng.uniform(0.6, 2.0)))
            if slide:
                size = max(slide, size - size % slide)
            number, unit = timeline.amount(size - size % self.clock.step if not slide else size)
            clause = f"RANGE {number} {unit}{'S' if rng.random() < 0.8 else ''}"
        elif kind == "ROWS":
            clause = f"ROWS {rng.randint(max(1, rows // self.places), max(1, rows))}"
        else:
            clause = kind
        self._note(f"window {kind or 'none'}")
        if slide and clause:
            number, unit = timeline.amount(slide)
            clause += f" SLIDE {number} {unit}"
        return FromPart(alias.stream, alias.name, clause)

    @staticmethod
    def _ordered(alias: Alias) -> Alias:
        """A ROWS window breaks ties by the columns that are used, so they must have an order."""
        return replace(alias, columns={c: t for c, t in alias.columns.items() if not predicates.is_opaque(t)})

    def _window_mix(self) -> list[float]:
        if not hasattr(self, "_mix"):
            mixes = [
                [1, 0, 0, 0],
                [1, 0, 0, 0],
                [1, 0, 0, 0],
                [0, 0, 1, 1],
                [0, 1, 0, 0],
                [3, 1, 1, 0.5],
                [3, 0, 1, 0.5],
            ]
            self._mix = [float(w) for w in self.rng.choice(mixes)]
        return self._mix

    def _where(
        self, edges: Sequence[Edge], aliases: Sequence[Alias], shape: str, filters: int, width: int
    ) -> list[str]:
        rng = self.rng
        where = []
        for left, right, kind in edges:
            a, b = aliases[left], aliases[right]
            key = a.keys[max(kind, 0)]
            number = predicates.is_number(a.columns[key]) and predicates.is_number(b.columns[key])
            write = predicates.equality if kind >= 0 else predicates.theta
            where.append(write(rng, a.ref(key), b.ref(key), number))
        timed = [a for a in aliases if a.time is not None]
        if len(timed) > 1 and rng.random() < 0.25:
            self._note("time bound")
            for _ in range(rng.choice([1, 1, 2])):
                one, other = rng.sample(timed, 2)
                where.append(
                    predicates.time_bound(
                        rng, one.ref(str(one.time)), other.ref(str(other.time)), max(width, self.clock.step)
                    )
                )
        where += [predicates.filter_of(rng, rng.choice(list(aliases)), rng.choice([1, 2])) for _ in range(filters)]
        self._note(*(["filter"] if filters else []))
        if len(aliases) > 1 and rng.random() < 0.2:
            self._note("condition across streams")
            where.append(predicates.across(rng, aliases, 2))
        rng.shuffle(where)
        return where

    def _select(
        self, aliases: Sequence[Alias], aggregate: bool, slide: int | None, where: list[str], sources: list[FromPart]
    ) -> SelectParts:
        rng = self.rng
        joined = rng.random() < 0.15
        if not aggregate:
            if rng.random() < 0.03 and not any(s.window.startswith("ROWS") for s in sources):
                return SelectParts(("*",), tuple(sources), tuple(where), joined=joined)
            outputs = [predicates.value(rng, aliases, rng.choice([1, 2, 3])) for _ in range(rng.randint(1, 5))]
            return SelectParts(_named(outputs), tuple(sources), tuple(where), joined=joined)
        self._note("aggregate")
        keys = self._group_keys(aliases)
        outputs = [
            *(k for k in keys if rng.random() < 0.9),
            *(self._aggregate(aliases) for _ in range(rng.randint(1, 4))),
        ]
        outputs += ["window_end()"] if slide and rng.random() < 0.8 else []
        having = None
        if rng.random() < 0.25:
            self._note("having")
            having = rng.choice(
                [
                    "COUNT(*) > 1",
                    "COUNT(*) BETWEEN 1 AND 20",
                    "COUNT(*) % 2 = 1",
                    "NOT COUNT(*) = 2",
                    "MIN(1) = 1 AND COUNT(*) >= 1",
                    "COUNT(*) <> 3",
                ]
            )
        if keys and outputs[: len(keys)] == keys and rng.random() < 0.15:
            self._note("group by position or name")
            keys = [rng.choice([str(i + 1), f"o{i}"]) for i in range(len(keys))]
        return SelectParts(_named(outputs), tuple(sources), tuple(where), tuple(keys), having, joined)

    def _group_keys(self, aliases: Sequence[Alias]) -> list[str]:
        rng = self.rng
        keys: list[str] = []
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            alias = rng.choice(list(aliases))
            column, type_ = rng.choice([(c, t) for c, t in alias.columns.items() if not predicates.is_opaque(t)])
            ref = alias.ref(column)
            if rng.random() < 0.2 and pa.types.is_integer(type_):
                ref = rng.choice([f"{ref} % 3", f"({ref} + 1) * 2", f"{ref} > 4", f"CAST({ref} AS VARCHAR)"])
            keys += [ref] if ref not in keys else []
        self._note("group by" if keys else "one group")
        return keys

    def _aggregate(self, aliases: Sequence[Alias]) -> str:
        rng = self.rng
        alias = rng.choice(list(aliases))
        numbers = [alias.ref(c) for c, t in alias.columns.items() if predicates.is_number(t)]
        plain = [alias.ref(c) for c, t in alias.columns.items() if not predicates.is_opaque(t)]
        number, other = rng.choice(numbers or ["1"]), rng.choice(plain)
        if rng.random() < 0.15:
            number = predicates.value(rng, aliases, 1, rng.choice([pa.int64(), pa.decimal128(18, 3)]))
        one = rng.choice([
            "COUNT(*)", f"COUNT({other})", f"COUNT(DISTINCT {other})", f"SUM({number})", f"MIN({other})", f"MAX({other})",
            f"AVG({number})", f"STDDEV_SAMP({number})", f"VAR_SAMP({number})",
        ])  # fmt: skip
        self._note(f"aggregate {one.split('(')[0]}{' DISTINCT' if 'DISTINCT' in one else ''}")
        if rng.random() < 0.15:
            self._note("expression over aggregates")
            total = number if numbers else "1"
            one = rng.choice(
                [
                    f"SUM({total}) / COUNT(*)",
                    f"MAX({total}) - MIN({total})",
                    f"COALESCE(SUM({total}), 0) + COUNT(*)",
                    "CASE WHEN COUNT(*) > 2 THEN 'many' ELSE 'few' END",
                    "COUNT(*) * 2 + 1",
                    "1 / (COUNT(*) - 2)",
                ]
            )
        return one

    # how it is run

    def _batches(
        self,
        streams: Sequence[StreamDecl],
        rows: dict[str, pa.RecordBatch],
        times: dict[str, list[int | None]],
        wide: int,
    ) -> tuple[timeline.Batch, ...]:
        rng = self.rng
        late = 0.15 if rng.random() < 0.2 else 0.0
        undo = rng.random() < 0.25
        self._note(*(["late rows"] if late else []), *(["wind back"] if undo else []))
        lateness = {s.name: s.lateness for s in streams}
        order = timeline.arrivals(rng, times, lateness, late, wide)
        return timeline.cut(rng, order, rows, undo)

    def _settings(self) -> dict[str, object]:
        rng = self.rng
        few = self.combinations < 150  # a packet of one row is slow, and shows what it can show on few rows too
        packet = rng.choices([1, 3, 16, 65_536], [1, 1, 3, 20] if few else [0, 0, 1, 30])[0]
        self._note(f"packet {packet}")
        return {
            "router": rng.choice(["fixed", "random"]),
            "packet": packet,
            "seed": rng.randrange(1000),
            "check": rng.random() < 0.3,
        }


def _named(outputs: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{text} AS o{i}" for i, text in enumerate(outputs))
