"""Results are those of the definition, whatever the route and however small the packets."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.udf import udf
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.kernels import values as kernels
from eddyline.settings import Settings
from lab.fuzz.eager import eager
from tests.support.jobs import Job, Row

QUERIES = {
    "chain": "SELECT a.x, b.x AS bx, c.x AS cx, d.x AS dx FROM a {w}, b {w}, c {w}, d {w} "
    "WHERE a.k = b.k AND b.x = c.x AND c.k = d.k",
    "star": "SELECT a.x, b.k, c.x AS cx, d.s FROM a {w}, b {w}, c {w}, d {w} "
    "WHERE a.k = b.k AND a.x = c.x AND a.s = d.s",
    "cycle": "SELECT a.k, a.s, c.s AS cs FROM a {w}, b {w}, c {w} WHERE a.k = b.k AND b.x = c.x AND c.s = a.s",
    "clique": "SELECT a.x, b.x AS bx, c.s, d.s AS ds FROM a {w}, b {w}, c {w}, d {w} "
    "WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.x <> d.x",
    "two edges": "SELECT a.k, b.f FROM a {w}, b {w} WHERE a.k = b.k AND a.s = b.s AND a.f = b.f",
    "band": "SELECT a.x, b.x AS bx FROM a {w}, b {w}, c {w} "
    "WHERE a.x BETWEEN b.x - 1 AND b.x + 1 AND b.f <= c.f AND c.k = 1",
    "cross": "SELECT a.x, b.x AS bx, c.k FROM a [RANGE 1 MICROSECONDS], b [RANGE 2 MICROSECONDS], c {w} "
    "WHERE a.x + b.x + c.x = 3",
    "self": "SELECT p.x, q.x AS qx, b.s FROM a {w} AS p, a {w} AS q, b {w} WHERE p.k = q.k AND q.s = b.s",
    "pairs": "SELECT a.x, b.x AS bx, c.x AS cx FROM a, b, c "
    "WHERE a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '3' MICROSECOND "
    "AND c.ts BETWEEN a.ts AND a.ts + INTERVAL '2' MICROSECOND",
    "functions": "SELECT a.x, b.x AS bx FROM a {w}, b {w}, c {w} "
    "WHERE route_odd(a.x) AND a.k = b.k AND route_odd(b.x + c.x) AND b.s = c.s",
    "rows": "SELECT a.x, b.x AS bx FROM a [ROWS 4], b [ROWS 3], c {w} WHERE a.k = b.k AND b.x = c.x",
    "nulls and decimals": "SELECT a.d, b.d AS bd FROM a {w}, b {w}, c {w} WHERE a.d = b.d AND b.w = c.w AND a.s = c.s",
}
COLUMNS = "k x s:string f:float d:decimal w:words"


@pytest.fixture(autouse=True)
def register() -> None:
    """Register the user function of the queries here."""

    @udf(returns=pa.bool_(), name="route_odd")
    def odd(x: np.ndarray) -> np.ndarray:
        return x % 2 == 1


def random_rows(rng: random.Random, start: int, n: int) -> list[Row]:
    def maybe(value: object) -> object:
        return None if rng.random() < 0.1 else value

    return [
        (
            start + rng.randrange(5),
            maybe(rng.randrange(3)),
            maybe(rng.randrange(-1, 4)),
            maybe(rng.choice(["", "a", "b"])),
            maybe(rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf")])),
            maybe(rng.choice([0, 1, -1, 10**30])),
            maybe(rng.choice(["p", "q"])),
        )
        for _ in range(n)
    ]


def run(select: str, settings: Settings, seed: int, tuning: Tuning = DEFAULT) -> tuple[Job, list[Row]]:
    rng = random.Random(seed)
    names = [n for n in "abcd" if f" {n} " in select or f" {n}," in select or f" {n}[" in select]
    job = Job(select, settings, lateness=dict.fromkeys(names, 9), tuning=tuning, **dict.fromkeys(names, COLUMNS))
    found = []
    for start in range(0, 24, 6):
        found += job.feed(**{name: random_rows(rng, start, rng.randrange(3, 8)) for name in names})
    return job, sorted(found + job.end(), key=repr)


ROUTERS = ("auto", "fixed", "random", "lottery", "rank", "benefit")
PACKETS = (1, 7, None)
INPUTS = (1, 3, None)
EVERY_SETTING = [
    Settings(router=router, packet=packet, input_batch=INPUTS[(i + j) % 3], reroute_every=(1, 1000)[(i // 3 + j) % 2],
             seed=i, check=True)
    for i, router in enumerate(ROUTERS)
    for j, packet in enumerate(PACKETS)
]  # fmt: skip
"""Every combination of router and packet size; each router and each packet size with every input batch and
reroute_every."""


def test_the_settings_that_are_tried_go_well_together() -> None:
    for one in ("router", "packet"):
        for other, values in (("input_batch", INPUTS), ("reroute_every", (1, 1000))):
            seen = {(getattr(s, one), getattr(s, other)) for s in EVERY_SETTING}
            assert len(seen) == len({getattr(s, one) for s in EVERY_SETTING}) * len(values)


@pytest.mark.parametrize("name", QUERIES)
def test_every_route_gives_the_rows_of_the_definition(name: str) -> None:
    select = QUERIES[name].format(w="[RANGE 5 MICROSECONDS]")
    total = 0
    for seed in range(2):
        job, plain = run(select, Settings(check=True), seed)
        assert plain == job.expected()
        total += len(plain)
        for settings in EVERY_SETTING[seed::2]:
            assert run(select, settings, seed)[1] == plain, settings
    assert total > 3


@pytest.mark.parametrize("name", QUERIES)
def test_thresholds_samples_and_reroutes_at_every_turn_change_no_row(name: str) -> None:
    """Every adaptation happens, because all are made eager: queues are full at once, thresholds double and halve, every
    packet is sampled, and routes change for any reason."""
    select, sampled, choice = QUERIES[name].format(w="[RANGE 5 MICROSECONDS]"), 0, False
    for seed in range(2):
        for every, rows in ((1, None), (3, 5)):
            settings = Settings(reroute_every=every, input_batch=rows, explore=1.0, check=True)
            job, found = run(select, settings, seed, eager(8))
            assert found == job.expected()
            made = job.engine.slot.executor.eddy
            sampled += sum(fork.profile.size for fork in made._router._forks.found)
            choice |= any(len(e.steps) > 1 and e.chosen for e in made.routes.entries.values())
            assert all(q.packets == 0 or q.tuples / q.packets <= 8 for q in made.scheduler.queues.values())
    assert (sampled > 0) == choice


def test_a_sample_leaves_no_trace_in_results_and_counts() -> None:
    """Errors of a user function are counted for the tuples that took the step, not for sampled tuples."""

    @udf(returns=pa.bool_(), name="route_fails")
    def fails(x: np.ndarray) -> np.ndarray:
        raise ValueError("never")

    rows = [(i // 4, i % 3, i % 5) for i in range(200)]
    select = "SELECT a.x, b.x AS y FROM a [RANGE 3 MICROSECONDS], b [RANGE 3 MICROSECONDS] WHERE a.k = b.k"
    tuning = eager(50)
    chosen = Settings(explore=1.0, reroute_every=1, check=True)
    job = Job(f"{select} AND (route_fails(a.x) OR b.x > 1)", chosen, tuning=tuning, a="k x", b="k x")
    found = job.feed(a=rows[:100], b=rows[:100]) + job.feed(a=rows[100:], b=rows[100:])
    assert sorted(found, key=repr) == job.expected() and found
    tuning = eager(16)
    settings = Settings(explore=1.0, reroute_every=1, check=True)
    select = "SELECT a.x FROM a WHERE coalesce(route_fails(a.x), TRUE) AND route_odd(a.k)"
    one = Job(select, settings, tuning=tuning, a="k x")
    found = one.feed(a=rows)
    assert found == one.expected() and found
    made = one.engine.slot.executor.eddy
    assert sum(fork.profile.size for fork in made._router._forks.found) > 10
    taken = [t for e in made.routes.entries.values() for t in e.steps if t.step.selection == 0]
    assert one.engine.counts.expression_errors == sum(t.tuples for t in taken) > 0


def test_what_is_in_flight_stays_bounded() -> None:
    """A join in the middle of the plan makes very many tuples of few: the queue after it is served before it overflows
    by much."""
    largest = DEFAULT.routing.largest_packet
    for packet, most in ((None, largest), (1000, 1000), (40_000, 40_000)):
        job = Job(
            "SELECT COUNT(*) AS n FROM a, b, c WHERE a.k = b.k AND b.x = c.x",
            Settings(packet=packet, router="fixed", input_batch=10_000), a="k", b="k x", c="x",
        )  # fmt: skip
        made = job.engine.slot.executor.eddy.scheduler
        put, occupancies = made.put, []
        made.put = lambda p, put=put, seen=occupancies: seen.append((q := put(p)).occupancy) or q
        job.feed(b=[(1, 7, 3)] * 600, c=[(1, 3)])
        job.feed(a=[(2, 7)] * 600)
        assert job.end() == [(360_000,)]
        assert max(occupancies) <= max(most, largest) + largest
        queue = made.queues[0b011, 0]
        assert queue.tuples == 360_000 and queue.tuples / queue.packets <= most
        assert queue.packets <= 2 * 360_000 / most + 1


def test_at_the_end_of_a_batch_nothing_waits() -> None:
    rng = random.Random(1)
    for packet in (None, 1, 7, 100):
        job = Job(QUERIES["chain"].format(w=""), Settings(packet=packet, check=True), **dict.fromkeys("abcd", COLUMNS))
        for start in range(0, 20, 5):
            job.feed(**{name: random_rows(rng, start, 9) for name in "abcd"})
            queues = job.engine.slot.executor.eddy.scheduler.queues.values()
            assert queues and all(queue.occupancy == 0 for queue in queues)


def test_packets_are_as_large_as_the_settings_say() -> None:
    rows = [(i // 9, i % 3) for i in range(900)]
    for packet in (1, 7, 100, None):
        job = Job("SELECT a.k FROM a, b WHERE a.k = b.k", Settings(packet=packet), a="k", b="k")
        job.feed(a=rows)
        job.feed(b=rows[:10])
        queue = job.engine.slot.executor.eddy.scheduler.queues[1, 0]
        assert (queue.tuples, queue.packets) == (900, -(-900 // (packet or 900)))


def test_a_reroute_comes_when_as_many_tuples_as_were_told_have_gone() -> None:
    for every, packet, wanted in ((1, 10, 30), (100, 10, 3), (15, 10, 15), (1000, 10, 1), (100, 300, 1)):
        job = Job(
            "SELECT a.x FROM a WHERE route_odd(a.x) AND route_odd(a.x + 1)",
            Settings(router="random", packet=packet, reroute_every=every), a="x",
        )  # fmt: skip
        made, asked = job.engine.slot.executor.eddy._router, []
        decide = made.decide
        made.decide = lambda entry, decide=decide, asked=asked: asked.append(entry.signature) or decide(entry)
        job.feed(a=[(i, 2 * (i % 2)) for i in range(300)])
        assert asked.count((1, 0)) == wanted


@pytest.mark.parametrize("name", ["two edges", "star", "cycle", "nulls and decimals"])
def test_keys_that_all_collide_are_told_apart_by_their_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    select = QUERIES[name].format(w="[RANGE 5 MICROSECONDS]")
    job, plain = run(select, Settings(), 1)
    monkeypatch.setattr(kernels, "hash_bytes", lambda data, offsets, out: out.fill(1))
    monkeypatch.setattr(kernels, "combine", lambda left, right, out: out.fill(2))
    assert run(select, Settings(check=True), 1)[1] == plain == job.expected()


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.binary(2),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
def test_every_hashed_type_is_verified(type_: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "hash_bytes", lambda data, offsets, out: out.fill(1))
    columns = pa.schema([("ts", pa.timestamp("us")), ("s", type_)])
    words = [b"ab", b"cd"] if "binary" in str(type_) else ["ab", "cd"]
    job = Job("SELECT a.s AS l, b.s AS r FROM a, b WHERE a.s = b.s", a=columns, b=columns)
    array = pa.array(words).dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else pa.array(words, type_)
    batch = pa.record_batch([pa.array([1, 2], pa.timestamp("us")), array], schema=columns)
    assert job.feed(a=batch, b=batch) == [(w, w) for w in words]


def test_wide_decimals_are_verified_also_when_nothing_is_left_to_verify() -> None:
    """The first of several equalities leaves no match, so the others get an empty packet."""
    job = Job(
        "SELECT a.x FROM a, b, c WHERE a.x = c.x AND b.y = c.y AND b.e = c.e AND a.d = b.d",
        a="x y d:decimal e:decimal",
        b="x y d:decimal e:decimal",
        c="x y d:decimal e:decimal",
    )
    assert job.feed(c=[(1, 1, 1, 5, 1)]) == job.feed(b=[(1, 1, 2, 5, 1)]) == []
    assert job.feed(a=[(1, 1, 1, 5, 1)]) == []
    assert job.feed(b=[(1, 1, 1, 5, 1)]) == [(1,)]


def test_ranges_at_the_ends_of_the_integers() -> None:
    """`x < y + 1` may overflow: by definition that is NULL, and never a match by wrap-around."""
    most, least = 2**63 - 1, -(2**63)
    values = [least, least + 1, -1, 0, 1, most - 1, most]
    rows = [(1, v) for v in values]
    total = 0
    for op in ("<", "<=", ">", ">="):
        for left, right in [("a.x", "b.x"), ("a.x", "b.x + 1"), ("a.x - 1", "b.x"), ("a.x + 2", "b.x - 2")]:
            job = Job(f"SELECT a.x, b.x AS y FROM a, b WHERE {left} {op} {right}", a="x", b="x")
            found = sorted(job.feed(a=rows) + job.feed(b=rows), key=repr)
            assert found == job.expected()
            other = Job(f"SELECT a.x, b.x AS y FROM a, b WHERE {left} {op} {right}", a="x", b="x")
            assert sorted(other.feed(b=rows) + other.feed(a=rows), key=repr) == found
            total += len(found)
    assert total > 200


def test_ranges_over_many_rows_use_the_sorted_index_and_agree_with_the_list() -> None:
    rng = random.Random(4)
    rows = [(i // 50, rng.randrange(-20, 20), rng.choice([0.5, -0.0, float("nan"), None])) for i in range(400)]
    window = "[RANGE 1 MICROSECONDS]"
    select = f"SELECT a.x, b.x AS y FROM a {window}, b {window} WHERE a.x < b.x - 17 AND a.f >= b.f"
    job = Job(select, Settings(packet=50, check=True), a="x f:float", b="x f:float")
    found = []
    for at in range(0, 400, 100):
        found += job.feed(a=rows[at : at + 100], b=rows[at : at + 100])
    assert not any(index.is_list for index in job.engine.slot.executor.stems[0].indexes.ordered.values())
    assert sorted(found, key=repr) == job.expected() and found
