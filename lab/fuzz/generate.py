"""A random case from a seed: schemas, join graph, windows, conditions, aggregates, rows, cuts, settings.

Everything is drawn from one generator of random numbers, so a seed determines a case. Each drawn feature is recorded,
so that a run can report what it covered.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from eddyline.testing.case import Batch, Case, FromPart, StreamDecl
from lab.fuzz import borrowed_windows, domains, graphs, predicates, selects, timeline
from lab.fuzz.predicates import Alias
from lab.fuzz.trees import GROUPED, random_tree

SLIDES = [1, 2, 5, 10]
ROUTERS = ["auto", "fixed", "random", "lottery", "rank", "benefit"]
SLOTS, GROUPS = [1, 2, 3, 8], [1, 7, 256]
TREES, GROUPING_TREES = 0.4, 0.8
"""The share of cases with three or more sources that have a plan with intermediate SteMs; GROUPING_TREES is the share
among queries in which operators can group."""

AGGREGATES, AGGREGATES_MIGRATE = 0.4, 0.6
"""The shares of cases with aggregates. With migrations it is higher, because group-bys move too."""

BORROWED = 0.5
"""The share of cases with RANGE and SLIDE that have windows with borrowed names in their place."""

DURABLE = 1 / 6
"""The share of cases that go through the batch protocol."""

CUTS, CUTS_SPILL = (0, 1, 1, 2, 2, 3, 5), (1, 2, 2, 3, 3, 4, 5)
"""The numbers of cuts into batches, of which one is drawn. Groups leave between two batches, so with spilling there is
at least one."""

PAYLOAD = {
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
"""Columns that are not keys: name and family."""
_MIXES: list[list[float]] = [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0], [3, 1, 1, 1], [6, 0, 2, 1]]
"""Weights of the windows RANGE, ROWS, UNBOUNDED and none for the sources of a case; a case draws one of these mixes."""


TABLES, LONE, ASKED = 0.1, 0.9, 0.5
"""The share of tables among streams and tables; in one of ten cases mostly a single stream is joined with tables; where
tables are asked there are more, too."""

SELF_JOINS, ALIASES = 0.08, 0.6
"""The share of sources that are another alias of a stream before them; and where aliases are tested."""


@dataclass
class _Made:
    """The streams of a case: declarations, items of FROM, rows, event times."""

    streams: list[StreamDecl] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    tables: dict[str, pa.RecordBatch] = field(default_factory=dict)
    rows: dict[str, pa.RecordBatch] = field(default_factory=dict)
    times: dict[str, list[int | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class CaseKind:
    """The kind of the cases that are drawn; without a flag, any kind."""

    migrate: bool = False
    """A join whose plan changes."""
    spill: bool = False
    """A job whose groups go to disk."""
    balance: bool = False
    """A job whose groups move between slots. In half of these jobs they go to disk too."""
    access: bool = False
    """A join with tables that are asked."""
    aliases: bool = False
    """A self-join, mostly one whose aliases can share a SteM."""
    windows: bool = False
    """An aggregate, mostly with TUMBLE, HOP, CUMULATE or Spark's window()."""


ANY_KIND = CaseKind()


def generate(seed: int, kind: CaseKind = ANY_KIND) -> Case:
    """The case of this seed."""
    tables = ASKED if kind.access else LONE if seed % 10 == 7 else TABLES
    joins = kind.spill or kind.balance or kind.access or kind.aliases
    self_joins = ALIASES if kind.aliases else SELF_JOINS
    generator = _Generator(random.Random(seed), kind.migrate, joins, tables, self_joins)
    generator.windows, generator.borrowed = random.Random(~seed), 1.0 if kind.windows else BORROWED
    case = generator.case()
    if kind.access:
        settings = {key: value for key, value in case.settings.items() if key not in ("migrate", "plan")}
        settings |= {"durable": seed % 1000} if seed % 2 else {}
        return replace(case, settings={**settings, "access": seed % 1_000_000})
    if not kind.spill and not kind.balance:
        return case
    settings, other = {"durable": seed % 1_000_000, **case.settings}, seed // 1_000_000 % 1_000_000
    if kind.spill or seed % 2:
        settings["spill"] = other
    if kind.balance:
        settings |= {"balance": other, "slots": random.Random(seed).choice([2, 2, 3, 5])}
    kinds = [kind for kind in ("durable", "spill", "balance") if kind in settings]
    return replace(case, settings=settings, features=(*dict.fromkeys((*case.features, *kinds)),))


class _Generator:
    def __init__(self, rng: random.Random, migrate: bool, spill: bool, tables: float, self_joins: float) -> None:
        self.rng, self.migrate, self.spill, self.tables = rng, migrate, spill, tables
        self.self_joins, self.alike = self_joins, self_joins > SELF_JOINS
        """The share of sources that are another alias, and whether aliases of a stream have the same filters."""
        self.windows, self.borrowed = rng, 0.0
        """Draws windows with borrowed names, and the share of cases with SLIDE that have them."""
        self.features: list[str] = []
        self.clock = timeline.timeline(rng)
        self.combinations = 0.0
        few = [0, 0] if migrate else [0, 26] if spill else [8, 26]  # plans change with three sources, a join has two
        self.places = rng.choices(range(1, 9), [*few, 25, 16, 10, 7, 4, 4])[0]
        self.nulls = rng.choice([0.0, 0.0, 0.05, 0.2])

    def case(self) -> Case:
        rng, step = self.rng, self.clock.step
        places = self.places
        shape = rng.choice(graphs.SHAPES) if places > 1 else "single"
        self._note(f"{places} sources", shape)
        wide = self.clock.horizon * step
        width = max(step, int(wide * (rng.uniform(0.2, 1.3) if places <= 4 else rng.uniform(0.7, 1.5))))
        width -= width % step
        filters = rng.choices([0, 1, 2, 3], [5, 4, 2, 1] if places <= 4 else [8, 3, 0, 0])[0]
        sizes = graphs.sizes(rng, places)
        edges = graphs.edges(rng, shape, places, len(sizes.families))
        part = min(1.0, width / wide)
        share = max(0.02, places * part ** (places - 1) - (places - 1) * part**places) * 0.5**filters
        self.combinations = sizes.fit(edges, share * (1 - self.nulls) ** (2 * len(edges)))
        self._note(*(f"key {f}" for f in sizes.families), *(["skew"] if sizes.skew else []))
        made = self._streams(sizes)
        only = self.borrowed == 1.0
        aggregate = only or rng.random() < (AGGREGATES_MIGRATE if self.migrate else AGGREGATES)
        slide = self._slide() if aggregate and (only or rng.random() < 0.65) else None
        mix = rng.choice([mix for mix in _MIXES if mix[0] or not only])
        sources = [self._window(a, width, slide, mix, len(made.rows.get(a.stream, ()))) for a in made.aliases]
        aliases = [
            _ordered(a) if s.window.startswith("ROWS") else a for a, s in zip(made.aliases, sources, strict=True)
        ]
        where = self._where(edges, aliases, filters, width)
        sliding = aggregate and any("SLIDE" in s.window for s in sources)
        if aggregate:
            self._note("aggregate", *(["slide"] if sliding else []))
            keys = None
            if slide and any(s.window.startswith("RANGE") for s in sources) and self.windows.random() < self.borrowed:
                self._note("borrowed windows")
                sources, keys = borrowed_windows.borrowed(self.windows, aliases, sources, slide, self.clock.step)
            select = selects.grouped_select(rng, aliases, sources, where, sliding, self._note, keys)
        else:
            select = selects.plain_select(rng, aliases, sources, where)
        batches, settings = self._batches(made, wide), self._settings()
        groups = sliding and not any(s.window.startswith("ROWS") for s in sources)
        plans = places > 2 or (places == 2 and groups)
        if plans and (rng.random() < TREES / 3 or self.migrate):
            settings["migrate"] = rng.randrange(1000)
            settings["pause_ms"] = rng.choice([0.0, 50.0])
            settings["execution"] = rng.choice(["unsynchronized", "unsynchronized", "semi", "total"])
            self._note("migrate")
        if plans and rng.random() < (GROUPING_TREES if groups else TREES):
            tree = random_tree(rng, places, [(i, j) for i, j, _ in edges], grouped=GROUPED if groups else 0.0)
            settings["plan"] = tree.text([a.name for a in aliases])
            self._note("tree", *(["grouped"] if any(t.grouped for t in tree.below()) else []))
        features = tuple(dict.fromkeys(self.features))
        return Case(tuple(made.streams), select, batches, made.tables, settings, features)

    def _note(self, *features: str) -> None:
        self.features.extend(features)

    # streams and rows

    def _streams(self, sizes: graphs.Sizes) -> _Made:
        rng, made = self.rng, _Made()
        pools = [domains.domain(rng, f, n) for f, n in zip(sizes.families, sizes.pools, strict=True)]
        dead = 0.05 if rng.random() < 0.1 else 0.0
        self._note(*(["nulls"] if self.nulls else []), *(["dead rows"] if dead else []))
        for place in range(self.places):
            if made.streams and rng.random() < self.self_joins:
                declared = rng.choice(made.streams)
                self._note("self-join")
            else:
                last_chance = place == self.places - 1 and not made.rows
                count = 0 if rng.random() < 0.008 else sizes.rows[place]
                columns = self._columns(pools, count, sizes.skew)
                declared = self._declare(
                    made, f"s{place}", columns, count, dead, not last_chance and rng.random() < self.tables
                )
            keys = tuple(f"k{i}" for i in range(len(pools)))
            alias = chr(ord("a") + place) if rng.random() < 0.8 else f"q{place}"
            columns_of = {f.name: f.type for f in declared.schema}
            made.aliases.append(Alias(alias, declared.name, columns_of, keys, declared.time, self._style()))
        if not made.rows:  # only tables, one of them twice: make it a stream
            return self._streams(sizes)
        return made

    def _declare(
        self, made: _Made, name: str, columns: list[tuple[str, pa.Array]], count: int, dead: float, is_table: bool
    ) -> StreamDecl:
        rng, time, lateness = self.rng, None, 0
        if is_table:
            self._note("static table")
        else:
            time = rng.choice(["ts", "ts", "at"])
            lateness = rng.choice([0, 1, 2, 5, 20]) * self.clock.step
            made.times[name] = self.clock.times(rng, count, dead)
            columns.insert(rng.randint(0, len(columns)), (time, domains.make(made.times[name], self._time_type())))
        batch = pa.RecordBatch.from_arrays([c for _, c in columns], names=[n for n, _ in columns])
        (made.tables if is_table else made.rows)[name] = batch
        self._note(*(["empty stream"] if not count else []), *(["lateness"] if lateness else []))
        declared = StreamDecl(name, batch.schema, time, lateness, rng.random() < 0.3)
        made.streams.append(declared)
        return declared

    def _style(self) -> str:
        """How names are written: mostly as declared, sometimes in another case, and without an alias where there is one
        source."""
        style = self.rng.choices(["", "upper", "bare"], [20, 1, 6 if self.places == 1 else 0])[0]
        self._note(*([f"names {style}"] if style else []))
        return style

    def _columns(self, pools: Sequence[domains.ValuePool], count: int, skew: bool) -> list[tuple[str, pa.Array]]:
        rng, columns = self.rng, []
        for i, pool in enumerate(pools):
            type_ = domains.concrete(rng, pool.family)
            columns.append((f"k{i}", domains.column(rng, pool, type_, count, self.nulls, skew)))
        for name in rng.sample(list(PAYLOAD), rng.randint(1, 4)):
            pool, type_ = domains.domain(rng, PAYLOAD[name], rng.randint(2, 20)), domains.concrete(rng, PAYLOAD[name])
            columns.append((name, domains.column(rng, pool, type_, count, self.nulls, False)))
        if rng.random() < 0.1:
            self._note("nested payload")
            columns.append(("p", domains.nested(rng, count)))
        self._note(*(f"type {values.type}" for _, values in columns))
        return columns

    def _time_type(self) -> pa.DataType:
        units = ["us", "us", "us", "ns"]
        units += ["ms"] if self.clock.step % 1_000 == 0 else []
        units += ["s"] if self.clock.step % 1_000_000 == 0 else []
        # DuckDB subtracts zoned timestamps before 1970 wrongly
        zoned = self.clock.base > 10**15 and self.rng.random() < 0.15
        return pa.timestamp(self.rng.choice(units), "UTC" if zoned else None)

    # the query

    def _slide(self) -> int:
        """A slide with at most some forty boundaries in the horizon."""
        return self.rng.choice([s for s in SLIDES if self.clock.horizon <= 40 * s]) * self.clock.step

    def _window(self, alias: Alias, width: int, slide: int | None, mix: list[float], rows: int) -> FromPart:
        rng = self.rng
        if alias.time is None:
            return FromPart(alias.stream, alias.name)
        kind = clause = rng.choices(["RANGE", "ROWS", "UNBOUNDED", ""], mix)[0]
        self._note(f"window {kind or 'none'}")
        if kind == "RANGE":
            size = width if rng.random() < 0.6 else int(width * rng.uniform(0.6, 2.0))
            size = max(slide, size - size % slide) if slide else size - size % self.clock.step
            number, unit = timeline.amount(size)
            clause = f"RANGE {number} {unit}{'S' if rng.random() < 0.8 else ''}"
        elif kind == "ROWS":
            clause = f"ROWS {rng.randint(max(1, rows // self.places), max(1, rows))}"
        if slide and clause:
            number, unit = timeline.amount(slide)
            clause += f" SLIDE {number} {unit}"
        return FromPart(alias.stream, alias.name, clause)

    def _where(self, edges: Sequence[graphs.Edge], aliases: Sequence[Alias], filters: int, width: int) -> list[str]:
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
                where.append(predicates.time_bound(rng, one.ref(str(one.time)), other.ref(str(other.time)), width))
        for _ in range(filters):
            one, depth = rng.choice(list(aliases)), rng.choice([1, 2])
            state = rng.getstate()
            where.append(predicates.filter_of(rng, one, depth))
            for alias in aliases if self.alike else ():
                if alias.stream == one.stream and alias is not one:
                    rng.setstate(state)
                    where.append(predicates.filter_of(rng, alias, depth))
        self._note(*(["filter"] if filters else []))
        if len(aliases) > 1 and rng.random() < 0.2:
            self._note("condition across streams")
            where.append(predicates.across(rng, aliases, 2))
        if rng.random() < 0.25:
            self._note("selections")
            where += [predicates.selection(rng, aliases) for _ in range(rng.choice([1, 2, 3]))]
        rng.shuffle(where)
        return where

    # how it is run

    def _batches(self, made: _Made, wide: int) -> tuple[Batch, ...]:
        rng = self.rng
        late = 0.15 if rng.random() < 0.2 else 0.0
        undo = rng.random() < 0.25
        self._note(*(["late rows"] if late else []), *(["wind back"] if undo else []))
        order = timeline.arrivals(rng, made.times, {s.name: s.lateness for s in made.streams}, late, wide)
        return timeline.cut(rng, order, made.rows, undo, CUTS_SPILL if self.spill else CUTS)

    def _settings(self) -> dict[str, object]:
        rng = self.rng
        few = self.combinations < 600  # packets of one row are slow, and few rows are enough to test them
        settings: dict[str, object] = {
            "router": rng.choices(ROUTERS, [3, 1, 1, 1, 1, 1])[0],
            "packet": rng.choices([None, 1, 3, 16, 1000], [14, 1, 2, 4, 4] if few else [20, 0, 0, 2, 5])[0],
            "input_batch": rng.choices(
                [None, 1, 2, 7, 100, 65_536], [8, 1, 1, 2, 1, 1] if few else [10, 0, 1, 1, 1, 1]
            )[0],
            "reroute_every": rng.choice([1, 10, 1000]),
            "explore": rng.choice([0.0, 0.02, 1.0]),
        }
        self._note(*(f"{name} {value}" for name, value in settings.items()))
        settings |= {"seed": rng.randrange(1000), "check": rng.random() < 0.3}
        shared = {"slots": rng.choices(SLOTS, [5, 2, 2, 1])[0], "groups": rng.choices(GROUPS, [1, 2, 5])[0]}
        self._note(*(f"{name} {value}" for name, value in shared.items()))
        settings |= shared
        if rng.random() < 0.35:
            settings["eager"] = rng.choice([1, 4]) if self.combinations < 150 else rng.choice([8, 16]) if few else 64
        if rng.random() < DURABLE:
            settings["durable"] = rng.randrange(1, 1000)
        self._note(*(name for name in ("check", "eager", "durable") if settings.get(name)))
        return settings


def _ordered(alias: Alias) -> Alias:
    """An alias for a ROWS window, only with columns that have an order: the window breaks ties by the used columns."""
    return replace(alias, columns={c: t for c, t in alias.columns.items() if not predicates.is_opaque(t)})
