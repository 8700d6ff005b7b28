"""Rows become messages: value, key, headers and time, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from eddyline.errors import SettingError
from eddyline.runtime.options import Options
from eddyline.runtime.sinks.avro_records import record_schema
from eddyline.runtime.sinks.kafka_messages import MessageEncoder, MessageOptions, as_dicts

_WHEN = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)
_ROWS = pa.record_batch(
    {
        "k": pa.array([1, None, -3], pa.int64()),
        "s": ['say "a", b', None, "line\nend"],
        "b": pa.array([b"\x00\xff", b"", None], pa.binary()),
        "at": pa.array([_WHEN, None, _WHEN], pa.timestamp("us", "UTC")),
    }
)


def made(batch: pa.RecordBatch = _ROWS, **given: str) -> MessageEncoder:
    options = Options("kafka", given)
    found = MessageOptions.read(options, batch.schema)
    options.done()
    return MessageEncoder(found, batch.schema)


def test_json_is_the_default() -> None:
    values = [json.loads(value) for value in made().values(_ROWS)]
    assert [value["k"] for value in values] == [1, None, -3] and values[0]["s"] == 'say "a", b'


def test_csv_can_be_read_back() -> None:
    rows = _ROWS.select(["k", "s"])
    read = [next(csv.reader(io.StringIO(value, newline=""))) for value in made(rows, format="csv").values(rows)]
    assert read == [["1", 'say "a", b'], ["", ""], ["-3", "line\nend"]]


def test_raw_writes_the_column_that_is_left() -> None:
    messages = made(_ROWS, format="raw", key="k", headers="s", timestamp="at")
    assert messages.values(_ROWS) == [b"\x00\xff", b"", None]
    assert messages.keys(_ROWS) == ["1", None, "-3"]
    assert messages.times(_ROWS) == [int(_WHEN.timestamp() * 1000), 0, int(_WHEN.timestamp() * 1000)]


def test_a_key_of_several_columns_is_an_object() -> None:
    assert made(key="k, S").keys(_ROWS) == [
        '{"k":1,"s":"say \\"a\\", b"}',
        '{"k":null,"s":null}',
        '{"k":-3,"s":"line\\nend"}',
    ]


def test_headers_are_columns_and_constants() -> None:
    headers = list(made(headers='kind=k, from="the shop, here", b').headers(_ROWS))
    assert headers[0] == [("kind", "1"), ("from", "the shop, here"), ("b", b"\x00\xff")]
    assert headers[1][0] == ("kind", None) and list(made().headers(_ROWS)) == [[], [], []]


def test_avro_can_be_read_back() -> None:
    batch = pa.record_batch(
        {
            "i": pa.array([1, None], pa.int32()),
            "f": pa.array([0.5, None], pa.float32()),
            "d": pa.array([date(2026, 1, 2), None]),
            "t": pa.array([_WHEN, None], pa.timestamp("us", "UTC")),
            "n": pa.array([Decimal("1.25"), None], pa.decimal128(10, 2)),
            "l": pa.array([["x", None], None], pa.list_(pa.string())),
            "r": pa.array([{"a": 1, "b": [{"c": True}]}, None]),
            "m": pa.array([[("x", 1)], []], pa.map_(pa.string(), pa.int64())),
            "o": pa.array([[[]], None], pa.list_(pa.map_(pa.string(), pa.int64()))),
        }
    )
    schema = record_schema(batch.schema)
    read: list[Any] = [
        fastavro.schemaless_reader(io.BytesIO(value), schema, None)
        for value in made(batch, format="avro").values(batch)
    ]
    want = batch.to_pylist()
    want[0] |= {"m": {"x": 1}, "o": [{}]}
    want[1]["m"] = {}
    assert read == want


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"key": "kk"}, "option key: there is no column kk; there is k, s, b, at"),
        ({"headers": 'a="b" c'}, "option headers is a list such as"),
        ({"headers": "nope=x"}, "option headers: there is no column x"),
        ({"timestamp": "s"}, "option timestamp is a column with times, and s has none"),
        ({"format": "raw"}, r"there are 4 besides key, headers and timestamp \(k, s, b, at\)"),
        ({"format": "raw", "key": "s,b,at"}, "format 'raw' writes text or bytes, and k is BIGINT"),
        ({"format": "csv"}, "csv cannot hold a column of type BLOB, as b is; use json or avro"),
        ({"format": "xml"}, "option format is json or csv or avro or raw, not 'xml'"),
    ],
)
def test_what_is_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        made(**given)


def test_avro_has_times_that_python_has_not() -> None:
    numbers = pa.array([-(10**17), 3 * 10**17, None])  # before the year 1, after 9999
    days = pa.array([-(10**6), 4 * 10**6, None], pa.int32())
    batch = pa.record_batch(
        {"us": numbers.cast(pa.timestamp("us")), "d": days.cast(pa.date32()),
         "ns": pa.array([1001, 2999, None]).cast(pa.timestamp("ns"))}
    )  # fmt: skip
    plain: Any = {"type": "record", "name": "row", "fields": [
        {"name": name, "type": ["null", type_]} for name, type_ in (("us", "long"), ("d", "int"), ("ns", "long"))
    ]}  # fmt: skip
    read = [
        fastavro.schemaless_reader(io.BytesIO(value), plain, None) for value in made(batch, format="avro").values(batch)
    ]
    assert read == [
        {"us": -(10**17), "d": -(10**6), "ns": 1}, {"us": 3 * 10**17, "d": 4 * 10**6, "ns": 2},
        {"us": None, "d": None, "ns": None},
    ]  # fmt: skip


def test_avro_names() -> None:
    with pytest.raises(SettingError, match='avro has no field named "a b"; give the column another name with AS'):
        record_schema(pa.schema([("a b", pa.int64())]))
    inner = pa.struct([("x", pa.int64())])
    with pytest.raises(SettingError, match=r"avro cannot hold these columns \(redefined named type: row_a_b\)"):
        record_schema(pa.schema([("a", pa.struct([("b", inner)])), ("a_b", inner)]))


def test_messages_for_the_client() -> None:
    assert as_dicts(["v"], None) == [{"value": "v"}] and as_dicts(["v"], ["k"]) == [{"value": "v", "key": "k"}]
    assert made(key="k").simple and not made(timestamp="at").simple and made().times(_ROWS) == [0, 0, 0]
