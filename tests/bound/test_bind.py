"""Binding: names, types, conjuncts, outputs, groups."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from eddyline.bound.bind import bind
from eddyline.bound.expr import WINDOW_END, Aggregate, Call, Expr, Literal, SourceColumn, sources_of, walk
from eddyline.bound.model import BoundQuery, Window, WindowKind
from eddyline.bound.slide import Slide
from eddyline.cql.script import Declaration, parse
from eddyline.errors import ScriptError

S = pa.schema(
    [("id", pa.int64()), ("Ts", pa.timestamp("us")), ("x", pa.float64()), ("name", pa.string()), ("flag", pa.bool_())]
)
T = pa.schema(
    [
        ("id", pa.int32()),
        ("s_id", pa.int64()),
        ("ts", pa.timestamp("ns", "UTC")),
        ("d", pa.dictionary(pa.int8(), pa.string())),
    ]
)
R = pa.schema([("id", pa.int64()), ("label", pa.large_string())])
SCHEMAS: Mapping[str, pa.Schema] = {"s": S, "t": T, "r": R}
DECLARED = """;
CREATE STREAM s USING json TIMESTAMP BY ts LATENESS 2 SECONDS; CREATE STREAM t USING json TIMESTAMP BY ts;
CREATE TABLE r USING json; CREATE SINK out USING json"""


def query(text: str) -> BoundQuery:
    return bind(parse(text + DECLARED), lambda declaration: SCHEMAS[declaration.name])


def exprs(text: str) -> list[Expr]:
    return [output.expr for output in query(text).outputs]


def refused(text: str) -> str:
    with pytest.raises(ScriptError) as caught:
        query(text)
    return caught.value.message


def test_sources_and_windows() -> None:
    bound = query("SELECT a.id FROM s [RANGE 5 SECONDS] AS a, T [ROWS 7] b, s c, r WHERE a.id = b.id")
    assert [(s.alias, s.stream.name, s.stream.time, s.stream.lateness) for s in bound.sources] == [
        ("a", "s", "Ts", 2_000_000),
        ("b", "t", "ts", 0),
        ("c", "s", "Ts", 2_000_000),
        ("r", "r", None, 0),
    ]
    kinds = [Window(WindowKind.RANGE, 5_000_000), Window(WindowKind.ROWS, 7), Window(), Window()]
    assert [s.window for s in bound.sources] == kinds
    assert bound.sources[0].stream is bound.sources[2].stream


def test_the_schema_is_asked_for_once_and_only_if_needed() -> None:
    asked: list[str] = []

    def schema_of(declaration: Declaration) -> pa.Schema:
        asked.append(declaration.name)
        return SCHEMAS[declaration.name]

    bind(parse("SELECT a.x FROM s a, s b" + DECLARED), schema_of)
    assert asked == ["s"]


def test_names_are_found_whatever_their_case() -> None:
    assert exprs('SELECT A.ID, ts, "NAME" FROM s a') == [
        SourceColumn(0, "id", pa.int64()),
        SourceColumn(0, "Ts", pa.timestamp("us")),
        SourceColumn(0, "name", pa.string()),
    ]


def test_bare_columns_of_several_sources() -> None:
    assert exprs("SELECT x, s_id FROM s, t") == [
        SourceColumn(0, "x", pa.float64()),
        SourceColumn(1, "s_id", pa.int64()),
    ]
    assert refused("SELECT id FROM s, t") == "column 'id' is in s and t; write s.id or t.id"


def test_a_column_is_used_if_it_is_named_whatever_is_left_of_it() -> None:
    """It breaks ties of ROWS windows."""
    found = query("SELECT x + NULL, id FROM s [ROWS 2]")
    assert isinstance(found.outputs[0].expr, Literal) and set(found.columns_of_source(0)) == {"x", "id"}


def test_names_of_outputs() -> None:
    bound = query("SELECT a.id, b.id, a.id + 1, a.id AS id_1, count_ AS x, a.x AS count_ FROM s a, s b")
    assert [o.name for o in bound.outputs] == ["id", "id_2", "a.id + 1", "id_1", "x", "count_"]
    assert query("SELECT * FROM s, r").schema.names == ["id", "Ts", "x", "name", "flag", "id_1", "label"]
    assert query("SELECT r.*, s.x FROM s, r").schema.names == ["id", "label", "x"]


def test_conjuncts_of_on_and_where() -> None:
    bound = query(
        "SELECT a.id FROM s a JOIN t b ON a.id = b.s_id AND a.x > 1 JOIN r ON TRUE "
        "WHERE (a.flag AND (b.id < 5)) AND (a.x = 1 OR a.x = 2)"
    )
    assert len(bound.predicates) == 6
    assert [sorted(sources_of(p)) for p in bound.predicates] == [[0, 1], [0], [], [0], [1], [0]]
    assert all(p.type == pa.bool_() for p in bound.predicates)


def test_constants() -> None:
    values = exprs(
        "SELECT 1, 3000000000, 99999999999999999999, 1.50, 1e3, -5, 'it''s', TRUE, NULL, INTERVAL '-5' SECOND, "
        "- INTERVAL 2 MINUTES, DATE '1970-01-03', TIMESTAMP '1970-01-01 00:00:01', $$raw$$ FROM s"
    )
    assert [str(v.type) for v in values] == [
        "int32", "int64", "decimal128(38, 0)", "decimal128(3, 2)", "double", "int32", "string", "bool", "int32",
        "duration[us]", "duration[us]", "date32[day]", "timestamp[us]", "string",
    ]  # fmt: skip
    assert all(isinstance(v, Literal) for v in values)
    assert [v.value for v in values if isinstance(v, Literal)][4:14] == [
        1000.0, -5, "it's", True, None, -5_000_000, -120_000_000, 2, 1_000_000, "raw",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("x + 1", "+"),
        ("-x", "-"),
        ("id // 2", "//"),
        ("x ^ 2", "pow"),
        ("name || 'a'", "||"),
        ("x <> 1", "<>"),
        ("x != 1", "<>"),
        ("x == 1", "="),
        ("x IS NULL", "is null"),
        ("x IS NOT NULL", "is not null"),
        ("NOT x IS NULL", "is not null"),
        ("flag IS TRUE", "is not distinct from"),
        ("flag IS NOT TRUE", "not"),
        ("x IS DISTINCT FROM 1", "is distinct from"),
        ("name LIKE 'a%'", "like"),
        ("name ILIKE 'a%'", "ilike"),
        ("x BETWEEN 1 AND 2", "between"),
        ("x NOT BETWEEN 1 AND 2", "not"),
        ("id IN (1, 2)", "in"),
        ("CASE WHEN flag THEN 1 ELSE 2 END", "case"),
        ("CASE id WHEN 1 THEN 'a' END", "case"),
        ("coalesce(x, 1)", "coalesce"),
        ("NULLIF(id, 1)", "nullif"),
        ("CAST(x AS VARCHAR)", "cast"),
        ("x::INTEGER", "cast"),
        ("TRY_CAST(name AS DATE)", "try_cast"),
        ("EXTRACT(hour FROM ts)", "extract"),
        ("ts - INTERVAL '1' HOUR", "-"),
        ("flag OR x > 1", "or"),
    ],
)
def test_operators(text: str, name: str) -> None:
    (bound,) = exprs(f"SELECT {text} FROM s")
    assert isinstance(bound, Call)
    assert bound.name == name


def test_aliases_can_be_used_elsewhere() -> None:
    bound = query("SELECT x * 2 AS double, double + 1 AS more FROM s WHERE double > 3")
    assert bound.outputs[0].expr in list(walk(bound.outputs[1].expr))
    assert bound.outputs[0].expr in list(walk(bound.predicates[0]))
    assert refused("SELECT y + 1 AS y FROM s") == "there is no column 'y'; there is id, Ts, x, name, flag"
    assert refused("SELECT b AS a, a AS b FROM s").startswith("there is no column 'b'")
    assert query("SELECT -x AS x FROM s WHERE x > 3").columns == {SourceColumn(0, "x", pa.float64())}


def test_grouping() -> None:
    bound = query(
        "SELECT name AS n, id % 2, SUM(x) + 1 AS t, COUNT(*), window_end() AS w "
        "FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] WHERE flag GROUP BY n, 2 HAVING COUNT(*) > 1 AND MAX(x) < 3"
    )
    group = bound.group
    assert group is not None
    assert group.keys == (bound.outputs[0].expr, bound.outputs[1].expr)
    assert [(a.name, a.distinct) for a in group.aggregates] == [("sum", False), ("count", False), ("max", False)]
    assert group.slide == Slide(2_000_000)
    assert group.having is not None
    assert bound.outputs[4].expr == WINDOW_END
    assert bound.columns == {
        c for e in (*group.keys, *bound.predicates) for c in walk(e) if isinstance(c, SourceColumn)
    } | {SourceColumn(0, "x", pa.float64())}


def test_a_key_may_be_an_expression_and_is_found_inside_outputs() -> None:
    bound = query("SELECT (id + 1) * 2 AS y, COUNT(*) FROM s GROUP BY id + 1")
    assert bound.group is not None
    assert bound.group.keys[0] in list(walk(bound.outputs[0].expr))


def test_a_column_is_preferred_to_an_alias_in_group_by() -> None:
    bound = query("SELECT COUNT(*) AS x FROM s GROUP BY x")
    assert bound.group is not None and bound.group.keys == (SourceColumn(0, "x", pa.float64()),)


def test_aggregates() -> None:
    bound = exprs(
        "SELECT COUNT(DISTINCT name), MIN(DISTINCT x), mean(id), stddev(x), variance(x), count(), SUM(id) FROM s"
    )
    assert all(isinstance(e, Aggregate) for e in bound)
    assert [(e.name, e.distinct, str(e.type)) for e in bound if isinstance(e, Aggregate)] == [
        ("count", True, "int64"),
        ("min", False, "double"),
        ("avg", False, "double"),
        ("stddev_samp", False, "double"),
        ("var_samp", False, "double"),
        ("count", False, "int64"),
        ("sum", False, "decimal128(38, 0)"),
    ]


def test_groups_without_aggregates_and_aggregates_without_groups() -> None:
    distinct = query("SELECT name FROM s GROUP BY name").group
    assert distinct is not None and distinct.aggregates == () and distinct.slide is None
    total = query("SELECT COUNT(*) FROM s").group
    assert total is not None and total.keys == ()
    constant = query("SELECT 1 FROM s HAVING COUNT(*) > 3").group
    assert constant is not None and len(constant.aggregates) == 1
    assert query("SELECT * FROM r, s GROUP BY 1, 2, 3, 4, 5, 6, 7").group is not None


def test_one_slide_is_enough() -> None:
    group = query("SELECT COUNT(*) FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS], t [RANGE 6 SECONDS], r").group
    assert group is not None and group.slide == Slide(2_000_000)
    assert refused("SELECT COUNT(*) FROM s [ROWS 5 SLIDE 2 SECONDS], t [RANGE 3 SECONDS]").startswith(
        "the SLIDE must divide"
    )


def test_an_ungrouped_column_is_shown_outside_the_aggregate() -> None:
    with pytest.raises(ScriptError) as caught:
        query("SELECT SUM(x) + x FROM s")
    assert caught.value.column == 17


def test_opaque_columns_can_be_selected_and_counted() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("l", pa.list_(pa.int8()))])
    text = "SELECT l, l IS NULL AS n FROM s; CREATE STREAM s USING json TIMESTAMP BY ts"
    bound = bind(parse(text), lambda declaration: schema)
    assert bound.schema.types == [pa.list_(pa.int8()), pa.bool_()]


def test_columns_that_differ_in_case_only() -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("a", pa.int8()), ("A", pa.int16())])
    script = "FROM s; CREATE STREAM s USING json TIMESTAMP BY ts"
    assert bind(parse(f"SELECT a, A {script}"), lambda declaration: schema).schema.types == [pa.int8(), pa.int16()]
    assert bind(parse(f"SELECT * {script}"), lambda declaration: schema).schema.names == ["ts", "a", "A_1"]
