"""Access methods in scripts. Refusals are in tests/golden/wrong_scripts.txt."""

from __future__ import annotations

import pytest

from eddyline.cql.access_methods import place_of_column
from eddyline.cql.declaration import Declaration
from eddyline.cql.places import Place
from eddyline.cql.script import parse

_TABLE = "CREATE TABLE t (id BIGINT, name VARCHAR) USING postgres OPTIONS (url_env 'PG_URL', concurrency 32)"


def declared(text: str) -> Declaration:
    return parse(f"{text}; SELECT id FROM t").declarations[0]


@pytest.mark.parametrize(
    ("clauses", "methods"),
    [
        ("", ()),
        ("SCAN", ((),)),
        ("INDEX ON (id)", (("id",),)),
        ("SCAN INDEX ON (id) INDEX ON (name)", ((), ("id",), ("name",))),
        ("index on (id, name) Index On (ID) scan", (("id", "name"), ("ID",), ())),
        ('INDEX ON ("odd name", `scan`)', (("odd name", "scan"),)),
    ],
)
def test_methods_are_read_in_their_order(clauses: str, methods: tuple[tuple[str, ...], ...]) -> None:
    assert declared(f"{_TABLE} {clauses}").methods == methods


def test_dead_into_stands_anywhere_among_the_methods() -> None:
    for clauses in ("SCAN DEAD INTO lost", "DEAD INTO lost SCAN"):
        found = declared(f"{_TABLE} {clauses}")
        assert (found.methods, found.dead_into) == (((),), "lost")


def test_each_index_column_has_a_place() -> None:
    places = declared("CREATE TABLE t (a BIGINT, b BIGINT) USING sqlite SCAN\nINDEX ON (a, b)").places
    assert [places[place_of_column(1, at)] for at in (0, 1)] == [Place(2, 11), Place(2, 14)]


def test_the_words_are_names_elsewhere() -> None:
    found = declared("CREATE TABLE scan (index BIGINT, scan BIGINT) USING sqlite OPTIONS (index scan) INDEX ON (index)")
    assert (found.name, found.methods, found.options) == ("scan", (("index",),), {"index": "scan"})
