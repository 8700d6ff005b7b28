"""The page about the language tells the truth: what it shows is accepted, what it lists as refused is refused."""

import re
from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.bound.bind import bind
from eddyline.cql.script import Declaration, parse
from eddyline.errors import ScriptError

PAGE = (Path(__file__).parent.parent.parent / "docs" / "language.md").read_text()
DECLARED = """;
CREATE STREAM orders USING json TIMESTAMP BY ts; CREATE STREAM payments USING json TIMESTAMP BY ts;
CREATE TABLE t USING json
"""
COLUMNS = [("id", pa.int64()), ("ts", pa.timestamp("us")), ("amount", pa.float64()), ("l", pa.list_(pa.int8()))]
SCHEMAS = {
    "orders": pa.schema([*COLUMNS, ("customer", pa.string())]),
    "payments": pa.schema([*COLUMNS, ("order_id", pa.int64())]),
    "t": pa.schema(COLUMNS),
}


def schema_of(declaration: Declaration) -> pa.Schema:
    return SCHEMAS[declaration.name]


@pytest.mark.parametrize("script", re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL))
def test_shown(script: str) -> None:
    assert bind(parse(script if "CREATE" in script else script + DECLARED), schema_of).outputs


ITEMS = """
DISTINCT id ;; (SELECT 1) ;; EXISTS (SELECT 1) ;; sum(id) OVER () ;; SUM(id) FILTER (WHERE id > 1) ;;
SUM(DISTINCT id) ;; AVG(DISTINCT id) ;; SUM(SUM(id)) ;; * EXCLUDE (id) ;; * REPLACE (1 AS id) ;;
* RENAME (id AS x) ;; orders.* EXCLUDE (id) ;; l[1:2] ;; l.x ;; customer.x ;; [1, 2] ;; {'a': 1} ;; now() ;;
current_date ;; random() ;; id = ANY (l) ;; (id, id) = (1, 2) ;;
customer COLLATE nocase ;; ? ;; $1 ;;
$x ;; @x ;; x -> x ;; id AS a, ts AS a ;; count(* EXCLUDE (id)) ;; f(id := 1) ;; SUM(id ORDER BY ts) ;;
first(id) ;; today() ;; current_timestamp ;; uuid() ;; count_if(id > 1)
"""
RESTS = """
ORDER BY id ;; LIMIT 5 ;; OFFSET 5 ;; FETCH FIRST 5 ROWS ONLY ;; QUALIFY id = 1 ;; WINDOW w AS () ;;
GROUP BY ALL ;; GROUP BY ROLLUP (id) ;; GROUP BY CUBE (id) ;; GROUP BY GROUPING SETS (id) ;;
GROUP BY id WITH ROLLUP ;; UNION SELECT id FROM orders ;; INTERSECT SELECT 1 ;; EXCEPT SELECT 1 ;;
WHERE id IN (SELECT 1) ;; USING SAMPLE 5 ;; TABLESAMPLE (5 ROWS) ;; PIVOT (SUM(id) FOR id IN (1)) ;;
AS o (a, b) ;; FOR UPDATE ;; , LATERAL (SELECT 1) ;; , UNNEST(l) ;; JOIN payments USING (id) ;; , t [ROWS 5] ;;
AT (VERSION => 1) ;; CONNECT BY id
"""
KINDS = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "ASOF", "LEFT OUTER", "POSITIONAL")
QUERIES = (
    "SELECT id FROM t",
    "WITH x AS (SELECT 1) SELECT id FROM orders",
    "FROM orders",
    "SELECT id INTO x FROM orders",
)


@pytest.mark.parametrize(
    "query",
    [
        *(f"SELECT 1 FROM orders a {kind} JOIN payments b ON a.id = b.id" for kind in KINDS),
        *(f"SELECT {item} FROM orders" for item in ITEMS.strip().split(";;")),
        *(f"SELECT id FROM orders {rest}" for rest in RESTS.strip().split(";;")),
        *QUERIES,
    ],
)
def test_refused(query: str) -> None:
    with pytest.raises(ScriptError) as caught:
        bind(parse(query + DECLARED), schema_of)
    assert caught.value.line <= 2
