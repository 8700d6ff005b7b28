"""What may be handed over as a stream or a table, on the local engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import eddyline as el
from eddyline.errors import SettingError

Table = Callable[..., pa.Table]
SQL = "SELECT s.k, s.kind, t.name FROM s, t WHERE s.k = t.id"


class Exported:
    """Nothing but Arrow's stream interface, as a DataFrame of polars has it, with the same views of text."""

    def __init__(self, table: pa.Table) -> None:
        fields = [(f.name, pa.string_view() if f.type == pa.string() else f.type) for f in table.schema]
        self._table = table.cast(pa.schema(fields))
        for at, field in enumerate(fields):  # and of categories, dictionaries of such views
            if field[0] == "kind":
                kinds = pa.array(["odd", "even"], pa.string_view())
                codes = pa.array([0, 1] * table.num_rows, pa.uint32()).slice(0, table.num_rows)
                self._table = self._table.set_column(at, "kind", pa.DictionaryArray.from_arrays(codes, kinds))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("hand_over", [lambda t: t, pa.Table.to_pandas, Exported, lambda t: t.to_reader()])
def test_streams_and_tables(table: Table, hand_over: Callable[[pa.Table], Any]) -> None:
    rows = table("k kind", (1, 1, "odd"), (2, 2, "even"), (3, 3, "odd"))
    names = pa.table({"id": [1, 3], "name": ["a", "b"]})
    query = el.query(SQL, {"s": el.stream(hand_over(rows), time="ts")}, {"t": hand_over(names)})
    expected = [{"k": 1, "kind": "odd", "name": "a"}, {"k": 3, "kind": "odd", "name": "b"}]
    assert query.start().to_arrow().to_pylist() == expected
    if not isinstance(hand_over(rows), pa.RecordBatchReader):
        assert query.start().to_arrow().to_pylist() == expected  # they are read anew


def test_an_index_of_pandas_that_has_a_name(table: Table) -> None:
    frame = table("k", (1, 1), (2, 2)).to_pandas().set_index("ts")
    assert el.query("SELECT ts, k FROM s", {"s": el.stream(frame, time="ts")}).start().to_pandas()["k"].tolist() == [
        1,
        2,
    ]
    assert "index" not in repr(el.stream(frame.reset_index().set_index(pd.Index([7, 8])), time="ts"))


def test_frames_that_are_no_columns() -> None:
    with pytest.raises(
        SettingError, match=r"column k of the DataFrame of pandas, .*object, cannot be read as Arrow: .*'x'"
    ):
        el.stream(pd.DataFrame({"ts": [pd.Timestamp(0)] * 2, "k": [1, "x"]}), time="ts")
    for wrong, kind in (({"ts": [1]}, "a dict"), ("rows.parquet", "'rows.parquet'")):
        with pytest.raises(SettingError, match=f"a DataFrame of pandas, polars or Spark, .* not {kind}"):
            el.stream(wrong, time="ts")


def test_frames_are_read_in_the_order_of_time_and_batches_in_their_own(table: Table) -> None:
    """Also where they take several batches: without an order rows would be late."""
    rows = table("k", *((7919 * at % 1000, at) for at in range(1000)))
    relation = duckdb.from_arrow(rows)
    for given in (rows, rows.to_pandas(), pl.DataFrame(rows), relation, Exported(rows)):
        run = el.query("SELECT ts, k FROM s", {"s": el.stream(given, time="ts")}).start(settings={"batch_rows": 100})
        times, summary = run.to_arrow()["ts"].to_pylist(), run.wait()
        assert times == sorted(times) and summary is not None and (summary.rows_out, summary.rows_late) == (1000, 0)
    given = el.stream(rows.to_batches(max_chunksize=50), time="ts")
    late = el.query("SELECT k FROM s", {"s": given}).start(settings={"batch_rows": 100}).wait()
    assert late is not None and late.rows_late > 100


def test_relations_of_one_connection() -> None:
    sql = "SELECT TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS ts, i AS k FROM range(100000) AS t(i)"
    a, b, t = duckdb.sql(sql), duckdb.sql(sql), duckdb.sql("SELECT 7 AS id")
    streams = {"a": el.stream(a, "ts"), "b": el.stream(b, "ts")}
    query = el.query("SELECT a.k FROM a [RANGE 1 SECOND], b, t WHERE a.k = b.k AND b.k = id", streams, {"t": t})
    assert [query.start().to_arrow()["k"].to_pylist() for _ in range(2)] == [[7], [7]]


@pytest.mark.parametrize(
    ("frame", "answer"),
    [
        (lambda ts: pa.table([ts, [1], [2]], ["ts", "k", "k"]), "two columns k"),
        (lambda ts: pd.DataFrame([[1, 2]], columns=["k", "k"]), "two columns k"),
        (lambda ts: pd.DataFrame({"ts": ts, "k": pd.period_range("2026", periods=1)}), "column k has periods"),
        (lambda ts: pl.DataFrame({"ts": ts, "k": pl.Series([object()])}), "column k of .* type Object"),
        (lambda ts: pl.DataFrame({"ts": ts, "k": pl.Series([1], dtype=pl.Int128)}), "column k of .* type Int128"),
        (lambda ts: pl.DataFrame({"ts": ts}).lazy(), "LazyFrame .* has no rows yet"),
        (lambda ts: pd.Series(ts), "not a Series"),
        (lambda ts: pa.table({"u": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])}), "column u"),
    ],
)
def test_columns_that_cannot_be_read(frame: Callable[[pa.Array], Any], answer: str) -> None:
    with pytest.raises(SettingError, match=answer):
        el.stream(frame(pa.array([pd.Timestamp("2026-01-01")])), time="ts")


def test_odd_frames(table: Table) -> None:
    """No rows, only NULLs, times in another zone and in nanoseconds, names with dots and quotes."""
    ts = pd.Series([pd.Timestamp("2026-01-01 00:00:00.000000999")] * 2)
    frame = pd.DataFrame({"t.s": ts, 'a"b': [None, None], "k": pd.Categorical([2, 1]), "d": ts - ts[0]})
    for given in (frame, frame.head(0), frame.assign(**{"t.s": ts.dt.tz_localize("Europe/Berlin")})):
        found = el.query('SELECT "t.s", "a""b", k, d FROM s', {"s": el.stream(given, time="t.s")}).start().to_pandas()
        assert list(found.columns) == list(frame.columns) and len(found) == len(given)
        assert (found["t.s"].dt.nanosecond == 999).all() and found["k"].tolist() == given["k"].tolist()
    dead = frame.assign(**{"t.s": pd.Series([pd.NaT, ts[1]])})
    summary = el.query("SELECT k FROM s", {"s": el.stream(dead, time="t.s")}).start().wait()
    assert summary is not None and (summary.rows_dead, summary.rows_out) == (1, 1)
