"""What may be handed over as a stream or a table, on the local engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
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
    with pytest.raises(SettingError, match=r"the DataFrame of pandas cannot be read as Arrow: .*k"):
        el.stream(pd.DataFrame({"ts": [pd.Timestamp(0)] * 2, "k": [1, "x"]}), time="ts")
    for wrong, kind in (({"ts": [1]}, "a dict"), ("rows.parquet", "'rows.parquet'")):
        with pytest.raises(SettingError, match=f"a DataFrame of pandas, polars or Spark, .* not {kind}"):
            el.stream(wrong, time="ts")
