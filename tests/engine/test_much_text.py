"""More text than an Arrow array can hold: the engine cuts packets and results itself. The limits are made small."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline.engine import gatherer, partial
from eddyline.routing import payload
from eddyline.state.stores import heap
from tests.conftest import Ran

Run = Callable[..., Ran]
Table = Callable[..., pa.Table]

QUERIES = {
    "rows": "SELECT a.t AS x, b.t AS y FROM a, b",
    "selection": "SELECT a.k AS x, b.k AS y FROM a, b WHERE length(a.t) + length(b.t) > 20 AND a.t || b.t <> 'no'",
    "groups": "SELECT a.t AS x, COUNT(*) AS y, COUNT(DISTINCT b.t) AS z, MIN(b.t) AS w FROM a, b GROUP BY a.t",
    "slides": """SELECT a.t AS x, COUNT(DISTINCT b.t) AS y, MAX(a.t || b.t) AS z, window_end() AS w
                 FROM a [RANGE 20 SECONDS SLIDE 10 SECONDS], b [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY a.t""",
}


@pytest.fixture
def two_streams(in_tmp: Path, table: Table) -> str:
    text = ""
    for name in "ab":
        rows = [(i, i, f"{name}{i:02}" * (1 + i // 4)) for i in range(20)]
        pq.write_table(table("k t", *rows), f"{name}.parquet")
        text += f"CREATE STREAM {name} USING parquet OPTIONS (path '{name}.parquet') TIMESTAMP BY ts;"
    return text


@pytest.mark.parametrize("limits", ["heap", "gathered", "both"])
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_results_are_the_same_in_parts(
    two_streams: str, run_script: Run, monkeypatch: pytest.MonkeyPatch, name: str, slots: int, limits: str
) -> None:
    def run(**settings: object) -> list[str]:
        return sorted(map(str, run_script(two_streams + QUERIES[name], {"slots": slots, **settings}).rows))

    expected = run()
    sizes: list[int] = []
    gather = payload.Payload.gather

    def noted(self: payload.Payload, packet: object, exprs: object) -> object:
        values = gather(self, packet, exprs)  # type: ignore[arg-type]
        sizes.append(sum(array.nbytes for array in values.values()))
        return values

    monkeypatch.setattr(payload.Payload, "gather", noted)
    if limits != "gathered":
        monkeypatch.setattr(heap, "MOST_BYTES", 100)
    if limits != "heap":
        monkeypatch.setattr(payload, "GATHERED", 200)
        monkeypatch.setattr(partial, "TEXT", 50)
    assert len(expected) > 3 and run() == expected
    assert sizes and (limits == "heap" or max(sizes) <= 200)


@pytest.mark.parametrize("plan", ["((a b) c)", "((a b)+ c)", "((a)+ b c)"])
def test_groups_below_a_join(
    two_streams: str, run_script: Run, table: Table, monkeypatch: pytest.MonkeyPatch, plan: str
) -> None:
    pq.write_table(table("k", *[(i, i) for i in range(20)]), "c.parquet")
    window = "[RANGE 20 SECONDS SLIDE 10 SECONDS]"
    text = f"""{two_streams} CREATE STREAM c USING parquet OPTIONS (path 'c.parquet') TIMESTAMP BY ts;
               SELECT b.t AS x, MIN(a.t) AS y, COUNT(*) AS z, window_end() AS w FROM a {window}, b {window}, c {window}
               WHERE a.k = b.k AND b.k = c.k GROUP BY b.t"""
    expected = sorted(map(str, run_script(text, {"plan": "mjoin"}).rows))
    monkeypatch.setattr(heap, "MOST_BYTES", 100)
    monkeypatch.setattr(payload, "GATHERED", 200)
    monkeypatch.setattr(gatherer, "RESULT_ROWS", 8)
    assert sorted(map(str, run_script(text, {"plan": plan}).rows)) == expected
