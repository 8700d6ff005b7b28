"""The access methods of bound tables. Refusals are in tests/golden/wrong_scripts.txt."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.bound.bind import bind
from eddyline.bound.model import AccessMethod, BoundQuery
from eddyline.cql.declaration import Declaration
from eddyline.cql.script import parse

_STREAM = "CREATE STREAM s (k BIGINT, ts TIMESTAMP) USING json TIMESTAMP BY ts;"


def bound(table: str) -> BoundQuery:
    def schema_of(declaration: Declaration) -> pa.Schema:
        assert declaration.name == "s", "the columns of an asked table are declared"
        return pa.schema(declaration.columns)

    return bind(parse(f"{_STREAM} CREATE TABLE t {table}; SELECT s.k FROM s, t WHERE s.k = t.id"), schema_of)


def test_methods_have_the_spelling_of_the_columns() -> None:
    stream = bound("(Id BIGINT, name VARCHAR) USING sqlite SCAN INDEX ON (ID, NAME)").sources[1].stream
    assert stream.methods == (AccessMethod(), AccessMethod(("Id", "name")))
    assert stream.is_asked and stream.is_table
    assert stream.schema == pa.schema([("Id", pa.int64()), ("name", pa.string())])


def test_a_table_without_methods_is_not_asked() -> None:
    with pytest.raises(AssertionError, match="are declared"):
        bound("(id BIGINT) USING sqlite")


@pytest.mark.parametrize(
    "type", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_MS", "DECIMAL(38, 3)", "BLOB", "BOOLEAN"]
)
def test_types_that_can_be_indexed(type: str) -> None:
    table = f"(id BIGINT, x {type}) USING sqlite INDEX ON (x)"
    assert bound(table).sources[1].stream.methods == (AccessMethod(("x",)),)
