"""Nexmark on Spark: offsets of its own, batches in which no stream runs ahead, and no end if it is followed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa

from eddyline.cql.script import parse
from eddyline.runtime.formats import open_source
from eddyline.runtime.sources.source import Wanted
from tests.conftest import Ran

_Q8 = """
CREATE STREAM auction USING nexmark OPTIONS (kind 'auction' {events}) TIMESTAMP BY dateTime;
CREATE STREAM person USING nexmark OPTIONS (kind 'person' {events}) TIMESTAMP BY dateTime;
SELECT p.id AS id, p.name AS name, a.reserve AS reserve
FROM auction [RANGE 1 SECOND] AS a, person [RANGE 1 SECOND] AS p WHERE a.seller = p.id
"""


def _table(text: str, number: int) -> pa.Table:
    source = open_source(parse(text).declarations[number], 0)
    wanted = Wanted.of(source.schema, source.schema.names, True)
    return pa.Table.from_batches([chunk.rows for chunk in source.read(wanted)])


def test_a_job_that_is_followed_and_then_ended(run_on_spark: Callable[..., Ran], tmp_path: Path) -> None:
    checkpoint = tmp_path / "ck"

    def has_read() -> bool:
        return len(list(checkpoint.rglob("commits/[0-9]*"))) > 1

    text = _Q8.format(events=", events 600000")
    ran = run_on_spark(text, checkpoint, has_read, batch_rows=9000, follow=True)
    assert ran.summary.stopped and 0 < ran.summary.rows_in < 48_000
    rest = run_on_spark(text, checkpoint, batch_rows=20_000)
    assert rest.summary.rows_in == 48_000 and not rest.summary.stopped
    auction, person = _table(text, 0), _table(text, 1)
    assert auction.num_rows + person.num_rows == 48_000
    expected = duckdb.query(
        "SELECT p.id, p.name, a.reserve FROM auction a, person p WHERE a.seller = p.id"
        " AND abs(epoch_us(a.dateTime) - epoch_us(p.dateTime)) <= 1000000"
    )
    assert Counter(tuple(r.values()) for r in ran.rows + rest.rows) == Counter(expected.fetchall())
    offsets = [
        json.loads(path.read_text().splitlines()[-1])["streams"]
        for path in checkpoint.rglob("offsets/[0-9]*")
        if "streams" in path.read_text()
    ]
    assert len(offsets) >= 3
    assert all(abs(streams["auction"]["event"] - streams["person"]["event"]) <= 100 for streams in offsets)
