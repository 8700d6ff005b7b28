"""Nexmark: the published rules and distributions, the same rows however they are read, both engines, restarts."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from eddyline.cql.script import parse
from eddyline.errors import SettingError
from eddyline.runtime.formats import open_source
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sources.nexmark.source import NexmarkSource
from eddyline.runtime.sources.source import Wanted
from eddyline.settings import Settings

_G, _MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1
_EVENTS = 200_000


def _source(kind: str, options: str = "", seed: int = 3, columns: str = "") -> NexmarkSource:
    given = f"kind '{kind}', events {_EVENTS}" if not options else f"kind '{kind}', {options}"
    text = f"CREATE STREAM s {columns} USING nexmark OPTIONS ({given}) TIMESTAMP BY dateTime; SELECT 1 AS x FROM s"
    source = open_source(parse(text).declarations[0], seed)
    assert isinstance(source, NexmarkSource)
    return source


def _rows(source: NexmarkSource, first: int = 0, last: int = _EVENTS, columns: list[str] | None = None) -> pa.Table:
    names = tuple(columns or source.schema.names)
    pieces = source.between({"event": first}, {"event": last})
    return pa.Table.from_batches([c.rows for p in pieces for c in source.read_piece(p, Wanted(names, names))])


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return {kind: _rows(_source(kind)) for kind in ("person", "auction", "bid")}


# The published rules, event by event, with the same random numbers


def _mixed(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


class _Random:
    def __init__(self, seed: int, event: int) -> None:
        self._state = _mixed((event * _G + _mixed(seed + _G)) & _MASK)

    def draw(self, number: int) -> int:
        return _mixed((self._state + (number + 1) * _G) & _MASK)

    def below(self, number: int, bound: int) -> int:
        return ((self.draw(number) >> 32) * bound) >> 32

    def price(self, number: int) -> int:
        return int(np.floor(10.0 ** ((self.draw(number) >> 11) * 2.0**-53 * 6.0) * 100.0 + 0.5))


def _last_person(event: int, p: tuple[int, int, int]) -> int:
    epoch, at = divmod(event, sum(p))
    return epoch * p[0] + min(at, p[0] - 1)


def _last_auction(event: int, p: tuple[int, int, int]) -> int:
    epoch, at = divmod(event, sum(p))
    if at < p[0]:
        epoch, at = epoch - 1, p[1] - 1
    elif at >= p[0] + p[1]:
        at = p[1] - 1
    else:
        at -= p[0]
    return epoch * p[1] + at


def _some_person(random: _Random, number: int, event: int, p: tuple[int, int, int], active: int) -> int:
    people = _last_person(event, p) + 1
    active = min(people, active)
    return people - active + random.below(number, active + 10)


def _bid(event: int, p: tuple[int, int, int], seed: int) -> tuple[int, int, int]:
    random, last = _Random(seed, event), _last_auction(event, p)
    if random.below(0, 2) > 0:
        auction = last // 100 * 100
    else:
        least = max(last - 100, 0)
        auction = least + random.below(1, last - least + 11)
    if random.below(2, 4) > 0:
        bidder = _last_person(event, p) // 100 * 100 + 1
    else:
        bidder = _some_person(random, 3, event, p, 1000)
    return auction + 1000, bidder + 1000, random.price(4)


def _auction(event: int, p: tuple[int, int, int], seed: int) -> tuple[int, int, int, int, int]:
    random = _Random(seed, event)
    hot, cold = _last_person(event, p) // 100 * 100, _some_person(random, 1, event, p, 1000)
    seller = hot if random.below(0, 4) > 0 else cold
    first, more = random.price(3), random.price(4)
    return _last_auction(event, p) + 1000, seller + 1000, 10 + random.below(2, 5), first, first + more


@pytest.mark.parametrize("p", [(1, 3, 46), (2, 5, 9)])
def test_the_compiled_loops_follow_the_published_rules(p: tuple[int, int, int]) -> None:
    options = f"events 9000000, person_proportion {p[0]}, auction_proportion {p[1]}, bid_proportion {p[2]}"
    for first in (0, 8_765_432):
        range_ = range(first, first + 600)
        made = _rows(_source("bid", options), first, first + 600, ["auction", "bidder", "price"])
        bids = [_bid(e, p, 3) for e in range_ if e % sum(p) >= p[0] + p[1]]
        assert list(zip(*(column.to_pylist() for column in made.columns), strict=True)) == bids
        names = ["id", "seller", "category", "initialBid", "reserve"]
        made = _rows(_source("auction", options), first, first + 600, names)
        auctions = [_auction(e, p, 3) for e in range_ if p[0] <= e % sum(p) < p[0] + p[1]]
        assert list(zip(*(column.to_pylist() for column in made.columns), strict=True)) == auctions
        made = _rows(_source("person", options), first, first + 600, ["id", "dateTime"])
        persons = [e for e in range_ if e % sum(p) < p[0]]
        assert made["id"].to_pylist() == [_last_person(e, p) + 1000 for e in persons]
        start = np.datetime64("2026-01-01", "us").astype(np.int64)
        assert made["dateTime"].cast(pa.int64()).to_pylist() == [start + e * 1000 // 10_000 * 1000 for e in persons]


# The published distributions


def test_proportions_and_ids(tables: dict[str, pa.Table]) -> None:
    assert [t.num_rows for t in tables.values()] == [_EVENTS // 50 * n for n in (1, 3, 46)]
    for kind in ("person", "auction"):
        assert tables[kind]["id"].to_pylist() == list(range(1000, 1000 + tables[kind].num_rows))


def test_hot_ratios(tables: dict[str, pa.Table]) -> None:
    shares = {}
    for kind, column, hot in (("bid", "auction", 0), ("bid", "bidder", 1), ("auction", "seller", 0)):
        keys = tables[kind][column].to_numpy()
        shares[column] = float((keys % 100 == hot).mean())
    assert abs(shares["auction"] - (1 / 2 + 1 / 2 / 100)) < 0.01
    assert abs(shares["bidder"] - (3 / 4 + 1 / 4 / 100)) < 0.01
    assert abs(shares["seller"] - (3 / 4 + 1 / 4 / 100)) < 0.02


def test_auctions_in_flight_and_active_people(tables: dict[str, pa.Table]) -> None:
    bids = tables["bid"]
    row = np.arange(bids.num_rows)
    last_auction, last_person = row // 46 * 3 + 2 + 1000, row // 46 + 1000
    behind = last_auction - bids["auction"].to_numpy()
    assert behind.max() <= 100 and behind.min() == -10
    cold = behind[(bids["auction"].to_numpy() % 100 != 0) & (row > 40_000)]
    assert abs(np.mean(cold) - 45) < 1  # uniform from -10 to 100
    behind = (last_person - bids["bidder"].to_numpy())[row > 50 * 46 * 25]
    assert behind.max() == 999 and behind.min() == -10
    known = np.isin(bids["bidder"].to_numpy(), tables["person"]["id"].to_numpy())
    assert known[:-1000].all()


def test_prices_categories_and_times(tables: dict[str, pa.Table]) -> None:
    logs = np.log10(tables["bid"]["price"].to_numpy() / 100)
    assert logs.min() >= 0 and logs.max() <= 6
    assert np.allclose(np.histogram(logs, 6, (0, 6))[0] / len(logs), 1 / 6, atol=0.01)
    auctions = tables["auction"]
    shares = Counter(auctions["category"].to_pylist())
    assert sorted(shares) == [10, 11, 12, 13, 14]
    assert all(abs(n / auctions.num_rows - 0.2) < 0.02 for n in shares.values())
    assert pc.all(pc.greater(auctions["reserve"], auctions["initialBid"])).as_py()
    open_for = pc.subtract(auctions["expires"], auctions["dateTime"]).cast(pa.int64()).to_numpy() / 1000
    assert open_for.min() >= 1 and open_for.max() <= 2 * 167  # 100 auctions come in 1,666 events, or 167 ms
    assert abs(open_for.mean() - 167) < 5
    for table in tables.values():
        times = table["dateTime"].cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all() and (times % 1000 == 0).all()
        assert times[-1] - times[0] < _EVENTS / 10_000 * 1e6


def test_texts(tables: dict[str, pa.Table]) -> None:
    bids, auctions, persons = tables["bid"], tables["auction"], tables["person"]
    channels = bids["channel"].to_pylist()
    hot = Counter(c for c in channels if not c.startswith("channel-"))
    assert set(hot) == {"Google", "Facebook", "Baidu", "Apple"}
    assert all(abs(n / len(channels) - 1 / 8) < 0.01 for n in hot.values())
    assert len(set(channels)) == 10_004
    of = dict(zip(channels, bids["url"].to_pylist(), strict=True))
    assert len(set(of.values())) > 9_900
    with_number = [c for c, url in of.items() if "&channel_id=" in url]
    assert abs(len(with_number) / 10_000 - 0.9) < 0.02
    assert abs(int(of[next(c for c in with_number)].rpartition("=")[2])) < 1 << 31
    assert all(url.startswith("https://www.nexmark.com/") and "/item.htm?query=1" in url for url in of.values())
    sizes = 4 * 8 + pc.binary_length(bids["extra"]).to_numpy()
    assert abs(sizes.mean() - 100) < 1 and sizes.min() == 32 + 54 and sizes.max() == 32 + 81
    texts = [pc.binary_length(auctions[name]).to_numpy() for name in ("itemName", "description", "extra")]
    assert texts[0].max() == 19 and texts[1].max() == 99
    assert abs((48 + sum(texts)).mean() - 500) < 5
    assert all(t == t.strip() for t in auctions["description"].to_pylist())
    letters = Counter("".join(auctions["description"].slice(0, 2000).to_pylist()))
    assert abs(letters[" "] / letters.total() - 1 / 13) < 0.01
    assert len(set(persons["name"].to_pylist())) == 99
    assert set(persons["state"].unique().to_pylist()) == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert len(persons["city"].unique()) == 10
    assert all(pc.match_substring_regex(persons["creditCard"], r"^\d{4} \d{4} \d{4} \d{4}$").to_pylist())
    assert all(pc.match_substring_regex(persons["emailAddress"], r"^[a-z ]*@[a-z ]*\.com$").to_pylist())
    texts = [pc.binary_length(c).to_numpy() for c in persons.drop_columns(["id", "dateTime"]).columns]
    sizes = 8 + sum(texts)
    assert abs(sizes.mean() - 200) < 3


# Reading


def test_any_range_and_any_columns_are_the_same(tables: dict[str, pa.Table]) -> None:
    for kind, table in tables.items():
        source = _source(kind)
        for first, last in ((0, 1), (49, 51), (77_777, 88_888)):
            before = sum(piece.rows for piece in source.between({}, {"event": first}))
            part = _rows(source, first, last) if source.between({"event": first}, {"event": last})[0].rows else None
            assert part is None or part.equals(table.slice(before, part.num_rows))
        for name in table.column_names:
            assert _rows(source, columns=[name])[name].equals(table[name])
        assert source.count() == table.num_rows
        assert not _rows(_source(kind, seed=4)).drop_columns(["dateTime"]).equals(table.drop_columns(["dateTime"]))


def test_plans_follow_the_kind() -> None:
    ends = {kind: _source(kind).plan({}, rows) for kind, rows in (("person", 100), ("auction", 300), ("bid", 4600))}
    assert set(map(str, ends.values())) == {"{'event': 5000}"}
    source = _source("bid")
    assert not source.ended({}) and source.ended({"event": _EVENTS})
    assert source.plan({"event": _EVENTS}, 10) == {"event": _EVENTS}
    assert source.backlog({"event": _EVENTS - 50}) == 46
    endless = _source("bid", "rate 5")
    assert endless.endless and endless.count() is None and not endless.ended({"event": 1 << 40})
    assert _source("bid", "duration '2 s', rate 100").count() == 4 * 46


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("bids", "", "option kind is person, auction or bid, not 'bids'"),
        ("bid", "event 5", "nexmark has no option 'event'; did you mean 'events'?"),
        ("bid", "rate 0", "option rate is a whole number of at least 1, not '0'"),
    ],
)
def test_wrong_options(kind: str, options: str, message: str) -> None:
    with pytest.raises(SettingError) as raised:
        _source(kind, options)
    assert str(raised.value) == message


def test_columns_of_its_own() -> None:
    with pytest.raises(SettingError, match=r"^nexmark has columns of its own \(id, name, .*\): leave out the list$"):
        _source("person", columns="(id BIGINT)")


_Q3 = """
CREATE STREAM auction USING nexmark OPTIONS (kind 'auction', events {events}) TIMESTAMP BY dateTime;
CREATE STREAM person USING nexmark OPTIONS (kind 'person', events {events}) TIMESTAMP BY dateTime;
CREATE SINK out USING parquet OPTIONS (path '{out}');
INSERT INTO out SELECT p.name AS name, p.city AS city, p.state AS state, a.id AS id
FROM auction [RANGE 2 SECONDS] AS a, person [RANGE 2 SECONDS] AS p
WHERE a.seller = p.id AND a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
"""


def _expected(tables: dict[str, pa.Table]) -> Counter[object]:
    auction, person = tables["auction"], tables["person"]
    found = duckdb.query(
        "SELECT p.name, p.city, p.state, a.id FROM auction a, person p WHERE a.seller = p.id AND a.category = 10"
        " AND p.state IN ('OR', 'ID', 'CA') AND abs(epoch_us(a.dateTime) - epoch_us(p.dateTime)) <= 2000000"
    )
    assert auction.num_rows and person.num_rows
    return Counter(found.fetchall())


def _more_than_one(batches: list[object]) -> bool:
    return len(batches) > 1


def _results(out: Path) -> Counter[object]:
    return Counter(tuple(row.values()) for row in pq.read_table(out).to_pylist())


def test_a_job_that_is_stopped_and_continued(tables: dict[str, pa.Table], tmp_path: Path) -> None:
    text = _Q3.format(events=_EVENTS, out=tmp_path / "out")
    settings = Settings(batch_rows=1500, seed=3)
    runs = 0
    for _ in range(20):
        batches: list[object] = []
        checkpoint = str(tmp_path / "ck")
        runner = LocalRunner(prepare(text, seed=3, checkpoint=checkpoint), settings, checkpoint)
        summary = runner.run(partial(_more_than_one, batches), batches.append)
        runs += 1
        if not summary.stopped:
            break
    assert runs > 2
    assert _results(tmp_path / "out") == _expected(tables)


def test_a_stream_that_never_ends_is_read_until_it_is_stopped(tmp_path: Path) -> None:
    text = _Q3.format(events=0, out=tmp_path / "out").replace(", events 0", "")
    batches: list[object] = []
    runner = LocalRunner(prepare(text), Settings(batch_rows=20_000), follow=True)
    summary = runner.run(lambda: len(batches) > 2, batches.append)
    assert summary.stopped and summary.rows_in >= 60_000
    assert pq.read_table(tmp_path / "out").num_rows > 0
