"""Tables in a PostgreSQL that tells which keys were asked for: its log is read right, and a second question noticed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from math import inf
from pathlib import Path

import psycopg
import pytest

from lab.chaos.asked_database import AskedDatabase, Committed, asked_database, lookups_in, rows_of
from lab.servers.postgres import NoPostgres

LOG = """1767225600.123 LOG:  statement: SET TimeZone TO 'UTC'
1767225600.200 LOG:  execute <unnamed>: SELECT array_agg(t."j"::int8) FROM u t WHERE t."j" = ANY($1::int8[])
1767225600.200 DETAIL:  parameters: $1 = '{4,-7}'
1767225601.000 LOG:  execute _pg3_0: SELECT array_agg(t."j"::int8) FROM w t WHERE t."j" = ANY($1::int8[])
1767225601.000 DETAIL:  Parameters: $1 = '{9}'
1767225602.000 LOG:  execute <unnamed>: SELECT a.attname FROM pg_attribute a
1767225602.000 DETAIL:  parameters: $1 = 'u'
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AskedDatabase]:
    try:
        with asked_database(tmp_path_factory.mktemp("database")) as found:
            yield found
    except NoPostgres as none:
        pytest.skip(str(none))


def test_the_log_tells_what_was_asked() -> None:
    found = [(lookup.at, lookup.table, set(lookup.keys)) for lookup in lookups_in(LOG)]
    assert found == [(1767225600.2, "u", {4, -7}), (1767225601.0, "w", {9})]


def test_tables_have_keys_with_no_row_and_with_two() -> None:
    keys = rows_of("u").column("j").to_pylist()
    assert {keys.count(key) for key in range(40)} == {0, 1, 2}


def test_a_key_that_is_asked_for_again_is_noticed(database: AskedDatabase) -> None:
    mine = replace(database)
    mine.begin()
    assert list(mine.wrong()) == ["the server was never asked"]
    with psycopg.connect(mine.server.url) as connection:
        for keys in ([1, 2], [3]):
            connection.execute("SELECT array_agg(t.name) FROM u t WHERE t.j = ANY(%s)", [keys])
        assert [set(lookup.keys) for lookup in mine.lookups] == [{1, 2}, {3}]
        assert mine.in_flight() == 0
        mine._committed.append(Committed(time.time(), {2: inf, 5: time.time()}))
        assert list(mine.wrong()) == []
        time.sleep(0.01)
        connection.execute("SELECT array_agg(t.name) FROM u t WHERE t.j = ANY(%s)", [[2, 5]])
    assert list(mine.wrong()) == ["1 keys were asked again after their answers were committed: [2]"]


def test_a_job_that_was_never_started_has_committed_nothing(tmp_path: Path, database: AskedDatabase) -> None:
    mine = replace(database)
    mine.begin()
    mine.committed(tmp_path)
    assert mine.kept == 0
