"""Access methods in scripts. Refusals are in tests/golden/wrong_scripts.txt."""

from __future__ import annotations

import pytest

from eddyline.cql.access_methods import place_of_column
from eddyline.cql.declaration import Declaration, DeclaredMethod, place_of_method, place_of_option
from eddyline.cql.places import Place
from eddyline.cql.script import parse
from eddyline.errors import ScriptError

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
    assert declared(f"{_TABLE} {clauses}").methods == tuple(map(DeclaredMethod, methods))


def test_methods_have_options_of_their_own() -> None:
    found = declared(
        f"{_TABLE}\nINDEX ON (id, name)\nINDEX ON (Name, ID) OPTIONS (URL_env 'PG_REPLICA')\n"
        "SCAN OPTIONS (url_env 'PG_REPLICA', timeout = 5) DEAD INTO lost"
    )
    replica, scan = {"url_env": "PG_REPLICA"}, {"url_env": "PG_REPLICA", "timeout": "5"}
    index = ("id", "name")  # the same columns in another order are the same index
    assert found.methods == (DeclaredMethod(index), DeclaredMethod(index, replica), DeclaredMethod((), scan))
    assert (found.options, found.dead_into) == ({"url_env": "PG_URL", "concurrency": "32"}, "lost")
    keys = (place_of_method(1), place_of_option(1, "url_env"), "option url_env")
    assert [found.places[key] for key in keys] == [Place(3, 1), Place(3, 30), Place(1, 66)]


@pytest.mark.parametrize("own", ["", "OPTIONS ()", "OPTIONS (url_env 'PG_URL')", "OPTIONS (concurrency 32)"])
def test_replicas_at_the_same_place_are_refused(own: str) -> None:
    with pytest.raises(ScriptError, match="there is an index on \\(ID\\) already") as caught:
        declared(f"{_TABLE}\nINDEX ON (id) INDEX ON (name) INDEX ON (ID) {own}")
    assert (caught.value.line, caught.value.column) == (2, 31)
    declared(f"{_TABLE} INDEX ON (id) INDEX ON (id) OPTIONS (concurrency 33) INDEX ON (id) OPTIONS (concurrency 34)")


def test_dead_into_stands_anywhere_among_the_methods() -> None:
    for clauses in ("SCAN DEAD INTO lost", "DEAD INTO lost SCAN"):
        found = declared(f"{_TABLE} {clauses}")
        assert (found.methods, found.dead_into) == ((DeclaredMethod(),), "lost")


def test_each_index_column_has_a_place() -> None:
    places = declared("CREATE TABLE t (a BIGINT, b BIGINT) USING sqlite SCAN\nINDEX ON (a, b)").places
    assert [places[place_of_column(1, at)] for at in (0, 1)] == [Place(2, 11), Place(2, 14)]


def test_the_words_are_names_elsewhere() -> None:
    found = declared("CREATE TABLE scan (index BIGINT, scan BIGINT) USING sqlite OPTIONS (index scan) INDEX ON (index)")
    assert (found.name, found.methods, found.options) == (
        "scan",
        (DeclaredMethod(("index",)),),
        {"index": "scan"},
    )
