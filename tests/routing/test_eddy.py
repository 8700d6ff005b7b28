"""Whatever the route and however small the packets, the rows are those of the definition."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from eddyline.kernels import values as kernels
from eddyline.plan.plan import Probe
from eddyline.query.udf import udf
from eddyline.routing.packet import Packet
from eddyline.routing.router import router
from eddyline.settings import Settings
from jobs import Job, Row

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


def register() -> None:
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


def run(select: str, settings: Settings, seed: int) -> tuple[Job, list[Row]]:
    register()
    rng = random.Random(seed)
    names = [n for n in "abcd" if f" {n} " in select or f" {n}," in select or f" {n}[" in select]
    job = Job(select, settings, lateness=dict.fromkeys(names, 9), **dict.fromkeys(names, COLUMNS))
    found = []
    for start in range(0, 24, 6):
        found += job.feed(**{name: random_rows(rng, start, rng.randrange(3, 8)) for name in names})
    return job, sorted(found + job.end(), key=repr)


@pytest.mark.parametrize("name", QUERIES)
def test_every_route_gives_the_rows_of_the_definition(name: str) -> None:
    select = QUERIES[name].format(w="[RANGE 5 MICROSECONDS]")
    total = 0
    for seed in range(2):
        job, fixed = run(select, Settings(check=True), seed)
        assert fixed == job.expected()
        total += len(fixed)
        for packet in (1, 7, 65536):
            for draw in range(2):
                settings = Settings(router="random", packet=packet, seed=draw, check=True)
                assert run(select, settings, seed)[1] == fixed
        assert run(select, Settings(packet=7, check=True), seed)[1] == fixed
    assert total > 3


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
    """The first of several equalities leaves no match; those after it get an empty packet."""
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
    """`x < y + 1` may overflow: NULL by the definition, and never a match that wraps round."""
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
    assert job.engine.slot.stems[0]._sorted
    assert sorted(found, key=repr) == job.expected() and found


def test_routing_arrays_count_what_went_through() -> None:
    job = Job("SELECT a.k FROM a, b WHERE a.k = b.k AND a.x = 1", a="k x", b="k x")
    job.feed(a=[(1, 5, 1), (1, 6, 1), (1, 5, 2)])
    job.feed(b=[(1, 5, 0), (1, 5, 0), (1, 9, 0)])
    [from_a], [from_b] = (job.engine.slot.eddy.routes.entries[1 << s, 0] for s in (0, 1))
    assert (from_a.tuples, from_a.produced) == (2, 0)
    assert (from_b.tuples, from_b.produced) == (3, 2)
    assert isinstance(from_b.step, Probe) and from_b.step.target == 0


def test_the_random_router_draws_the_same_with_the_same_seed_and_takes_every_step() -> None:
    routers = [router(Settings(router="random", seed=seed)) for seed in (1, 1, 2)]
    entry = [object(), object(), object()]
    picked = [[entry.index(r.choose(entry)) for _ in range(50)] for r in routers]  # type: ignore[arg-type]
    assert picked[0] == picked[1] != picked[2]
    assert set(picked[0]) == {0, 1, 2}


def test_packets() -> None:
    packet = Packet({0: np.array([4, 5, 6])}, 0b1, 9)
    assert packet.signature == (0b1, 0b1)
    joined = packet.joined(np.array([0, 0, 2]), 3, np.array([7, 8, 9]))
    assert joined.signature == (0b1001, 0b1) and joined.size == 3 and joined.number == 9
    assert joined.rows[0].tolist() == [4, 4, 6] and joined.rows[3].tolist() == [7, 8, 9]
    assert joined.take(np.array([True, False, True])).rows[3].tolist() == [7, 9]
    assert joined.take(np.array([2])).rows[0].tolist() == [6]
    assert packet.passed(2).signature == (0b1, 0b101)
