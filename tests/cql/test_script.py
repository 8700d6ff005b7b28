"""Parsing: statements, options, windows, places."""

import pyarrow as pa
import pytest

from eddyline.cql.names import did_you_mean
from eddyline.cql.places import Place, place_at, shown
from eddyline.cql.script import FromItem, Script, parse
from eddyline.cql.units import parts_of, unit_of
from eddyline.errors import ScriptError

SECOND, MINUTE, HOUR, DAY = 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000

INTERFACE = """
CREATE STREAM orders   USING parquet OPTIONS (path 'data/orders')   TIMESTAMP BY ts LATENESS 1 SECOND;
CREATE STREAM payments USING parquet OPTIONS (path 'data/payments') TIMESTAMP BY ts;
CREATE STREAM shipping USING json    OPTIONS (path 'data/shipping') TIMESTAMP BY ts;
CREATE SINK   out      USING parquet OPTIONS (path 'out');

INSERT INTO out
SELECT o.id, p.amount, s.carrier
FROM orders [RANGE 30 MINUTES] AS o, payments [RANGE 30 MINUTES] AS p, shipping [RANGE 1 HOUR] AS s
WHERE o.id = p.order_id AND p.shipment = s.id AND p.amount > 100;
"""


def sources(text: str) -> list[tuple[str, str, tuple[str, int, int | None] | None]]:
    def window(item: FromItem) -> tuple[str, int, int | None] | None:
        return (item.window.kind, item.window.size, item.window.slide) if item.window else None

    return [(item.stream, item.alias, window(item)) for item in parse(f"SELECT 1 FROM {text}").sources]


def test_the_script_of_the_interface() -> None:
    script = parse(INTERFACE)
    orders, payments, shipping, out = script.declarations
    assert (orders.kind, orders.name, orders.format, orders.time, orders.lateness) == (
        "STREAM",
        "orders",
        "parquet",
        "ts",
        SECOND,
    )
    assert (payments.options, payments.lateness, payments.columns) == ({"path": "data/payments"}, 0, None)
    assert (shipping.format, out.kind, out.time) == ("json", "SINK", None)
    assert script.insert_into == "out"
    assert script.items == ("o.id", "p.amount", "s.carrier")
    assert [item.alias for item in script.sources] == ["o", "p", "s"]
    assert script.sources[2].window is not None and script.sources[2].window.size == HOUR


def test_a_declaration_with_everything() -> None:
    text = """/* all */ create stream "My Stream" (id BIGINT, Ts timestamp, "a b" DECIMAL(10,2), l INTEGER[],
      s STRUCT(a INT, b VARCHAR), m MAP(VARCHAR, DOUBLE),
      z TIMESTAMP WITH TIME ZONE, t TIME, p DOUBLE PRECISION, n DECIMAL) -- the columns
      USING kafka OPTIONS (kafka.bootstrap.servers 'host:9092', startingOffsets = earliest, "max" 5, 'x.y' -1.5,
      flag true)
      DEAD INTO d LATE INTO "l l" LATENESS 1 HOUR 30 MINUTES TIMESTAMP BY Ts; select 1 from s"""
    declaration = parse(text).declarations[0]
    assert declaration.name == "My Stream"
    assert dict(declaration.columns or ()) == {
        "id": pa.int64(),
        "Ts": pa.timestamp("us"),
        "a b": pa.decimal128(10, 2),
        "l": pa.list_(pa.int32()),
        "s": pa.struct([("a", pa.int32()), ("b", pa.string())]),
        "m": pa.map_(pa.string(), pa.float64()),
        "z": pa.timestamp("us", "UTC"),
        "t": pa.time64("us"),
        "p": pa.float64(),
        "n": pa.decimal128(18, 3),
    }
    assert declaration.options == {
        "kafka.bootstrap.servers": "host:9092",
        "startingoffsets": "earliest",
        "max": "5",
        "x.y": "-1.5",
        "flag": "true",
    }
    assert (declaration.time, declaration.lateness) == ("Ts", 90 * MINUTE)
    assert (declaration.late_into, declaration.dead_into) == ("l l", "d")
    assert declaration.place == Place(1, 25)


@pytest.mark.parametrize("format_", ["redis-stream", "'redis-stream'", "Redis-Stream", '"redis-stream"'])
def test_a_format_may_have_a_hyphen(format_: str) -> None:
    declaration = parse(f"CREATE STREAM s USING {format_} OPTIONS (keys 'a') TIMESTAMP BY ts; SELECT 1 FROM s")
    assert (declaration.declarations[0].format, declaration.declarations[0].time) == ("redis-stream", "ts")


@pytest.mark.parametrize("format_", ["redis-", "-stream", "redis - -stream", "redis-1", "''"])
def test_what_is_no_format(format_: str) -> None:
    with pytest.raises(ScriptError, match="expected a format such as parquet, csv or json"):
        parse(f"CREATE STREAM s USING {format_}; SELECT 1 FROM s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s", ("s", "s", None)),
        ("s x", ("s", "x", None)),
        ("s AS x", ("s", "x", None)),
        ('"S S" AS "X"', ("S S", "X", None)),
        ("s [RANGE 30 MINUTES] AS a", ("s", "a", ("RANGE", 30 * MINUTE, None))),
        ("s [RANGE 30 MINUTES] a", ("s", "a", ("RANGE", 30 * MINUTE, None))),
        ("s AS a [RANGE 30 MINUTES]", ("s", "a", ("RANGE", 30 * MINUTE, None))),
        ("s[range 0 second]", ("s", "s", ("RANGE", 0, None))),
        ("s [RANGE 10 MINUTES SLIDE 1 MINUTE]", ("s", "s", ("RANGE", 10 * MINUTE, MINUTE))),
        ("s [RANGE INTERVAL '30' MINUTE]", ("s", "s", ("RANGE", 30 * MINUTE, None))),
        ("s [RANGE '1 day 2 hours']", ("s", "s", ("RANGE", DAY + 2 * HOUR, None))),
        ("s [RANGE 1 WEEK 5 MICROSECONDS]", ("s", "s", ("RANGE", 7 * DAY + 5, None))),
        ("s [RANGE 1.5 SECONDS]", ("s", "s", ("RANGE", 1_500_000, None))),
        ("s [RANGE 250 MILLISECONDS]", ("s", "s", ("RANGE", 250_000, None))),
        ("s [RANGE UNBOUNDED]", ("s", "s", ("UNBOUNDED", 0, None))),
        ("s [ROWS 1000]", ("s", "s", ("ROWS", 1000, None))),
        ("s [ROWS 1000 SLIDE 5 SECONDS]", ("s", "s", ("ROWS", 1000, 5 * SECOND))),
        ("s [UNBOUNDED]", ("s", "s", ("UNBOUNDED", 0, None))),
        ("s [UNBOUNDED SLIDE 1 DAY]", ("s", "s", ("UNBOUNDED", 0, DAY))),
    ],
)
def test_windows(text: str, expected: tuple[str, str, object]) -> None:
    assert sources(text) == [expected]
    assert sources(f"{text}, t [ROWS 1]")[0] == expected
    assert sources(f"t CROSS JOIN {text} WHERE 1 = 1")[1] == expected
    assert sources(f"t JOIN {text} ON t.a = left(b, 1) AND f(a, b) INNER JOIN u ON TRUE GROUP BY a, b")[1] == expected


def test_the_from_of_a_query_is_not_that_of_an_expression() -> None:
    script = parse("SELECT a IS NOT DISTINCT FROM b, EXTRACT(hour FROM c), d FROM s WHERE a IS DISTINCT FROM b")
    assert script.items == ("a IS NOT DISTINCT FROM b", "EXTRACT(hour FROM c)", "d")
    assert [item.stream for item in script.sources] == ["s"]


def test_comments_and_quotes_do_not_disturb() -> None:
    script = parse("SELECT ';' AS x, '--' AS y -- ; [RANGE\nFROM s /* [ROWS 5] ; */ [ROWS 7];;")
    assert script.sources[0].window is not None and script.sources[0].window.size == 7
    assert [e.alias for e in script.select.expressions] == ["x", "y"]
    assert parse("SELECT a /* why */ + 1, count( * ) FROM s").items == ("a + 1", "count( * )")


def test_a_bare_select_has_no_sink() -> None:
    script = parse("SELECT a FROM s")
    assert isinstance(script, Script)
    assert (script.insert_into, script.declarations) == (None, ())


@pytest.mark.parametrize("items", ["x", "s.x AS y, 1", "*", "s.*, x", "'text'", '"x"', "CASE WHEN x > 1 THEN 1 END"])
def test_partial(items: str) -> None:
    script, whole = parse(f"SELECT\n  Partial {items} FROM s"), parse(f"SELECT {items} FROM s")
    assert script.partial == Place(2, 3)
    assert (script.items, script.select) == (whole.items, whole.select)


@pytest.mark.parametrize(
    "items", ["partial", "partial, x", "partial.x", "partial * 2", "partial AS y", "partial IS NULL", '"partial" y']
)
def test_a_column_called_partial(items: str) -> None:
    assert parse(f"SELECT {items} FROM s").partial is None


def test_places_are_those_of_the_script() -> None:
    with pytest.raises(ScriptError) as caught:
        parse("SELECT a\r\nFROM s\r\n\tWHERE x = = 1")
    assert (caught.value.line, caught.value.column) == (3, 12)
    assert caught.value.pretty().split("\n")[1:] == ["  \tWHERE x = = 1", "  \t          ^"]
    assert place_at("ab\ncd", 4) == Place(2, 2)
    assert place_at("ab\n", 99) == Place(2, 1)


def test_helpers() -> None:
    assert shown("a\nb") == "'a\\nb'"
    assert shown("x" * 99) == f"'{'x' * 40}...'"
    assert [unit_of(w) for w in ("MINUTES", "min", "Hour", "us", "months", "moment")] == [
        "MINUTE",
        "MINUTE",
        "HOUR",
        "MICROSECOND",
        "MONTH",
        None,
    ]
    assert parts_of("-1 day 2.5 hours") == [("-1", "DAY"), ("2.5", "HOUR")]
    assert parts_of("soon") is None
    assert did_you_mean("amout", ["id", "Amount"]) == "; did you mean 'Amount'?"
    assert did_you_mean("zzz", ["id", "ts"]) == "; there is id, ts"
    assert did_you_mean("zzz", []) == ""
