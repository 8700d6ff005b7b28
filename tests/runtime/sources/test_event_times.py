"""TIMESTAMP BY an expression: the same results as with a column that has the times already."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

import eddyline as el
from eddyline.errors import EddylineError, ScriptError
from eddyline.plan.explain import warnings
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.runner import LocalRunner
from eddyline.runtime.sinks.callback import CallbackSink
from eddyline.settings import from_mapping
from tests.conftest import Ran

START = datetime(2026, 11, 16, 23, 59, 30)
FORMS = {
    "seconds": "to_timestamp(seconds)",
    "ms": "epoch_ms(ms)",
    "us": "make_timestamp(us) AS at",
    "text": "strptime(text, '%d.%m.%Y %H:%M:%S')",
    "iso": "CAST(iso AS TIMESTAMP)",
    "later": "epoch_ms(ms - 3600000) + INTERVAL '1' HOUR",
    "plain": "ts",
}


def rows(seed: int) -> pa.Table:
    """Every time in all forms; whole seconds, a little out of order."""
    rng = random.Random(seed)
    seconds = sorted(range(60), key=lambda s: s + rng.randint(0, 3))
    times = [START + timedelta(seconds=s) for s in seconds]
    micros = [int((t - datetime(1970, 1, 1)).total_seconds()) * 10**6 for t in times]
    return pa.table(
        {
            "k": pa.array([rng.randrange(9) for _ in times]),
            "ts": pa.array(times, pa.timestamp("us")),
            "seconds": pa.array([u // 10**6 for u in micros]),
            "ms": pa.array([u // 1000 for u in micros]),
            "us": pa.array(micros),
            "text": [t.strftime("%d.%m.%Y %H:%M:%S") for t in times],
            "iso": [t.isoformat() for t in times],
        }
    )


def script(one: str, other: str, select: str, columns: str = "") -> str:
    return (
        f"CREATE STREAM a {columns} USING {one} TIMESTAMP BY {{a}} LATENESS 5 SECONDS;"
        f"CREATE STREAM b {columns} USING {other} TIMESTAMP BY {{b}} LATENESS 5 SECONDS; {select}"
    )


JOIN = "SELECT a.k, a.us AS x, b.us AS y FROM a [RANGE 4 SECONDS], b [RANGE 4 SECONDS] WHERE a.k = b.k"
COLUMNS = "(k BIGINT, ts TIMESTAMP, seconds BIGINT, ms BIGINT, us BIGINT, text VARCHAR, iso VARCHAR)"


def written(format: str, name: str, table: pa.Table) -> str:
    folder = Path(name)
    folder.mkdir()
    if format == "parquet":
        pq.write_table(table, folder / "0.parquet", row_group_size=20)
    elif format == "csv":
        pcsv.write_csv(table, folder / "0.csv")
    else:
        lines = (json.dumps(row, default=str) for row in table.to_pylist())
        (folder / "0.json").write_text("\n".join(lines))
    return f"{format} OPTIONS (path '{name}')"


def ordered(ran: Ran) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in ran.rows)


@pytest.fixture
def run(in_tmp: Path) -> Callable[..., Ran]:
    """Runs a script on the local engine, in a folder of its own."""

    def run(text: str, checkpoint: str | None = None, **settings: object) -> Ran:
        found: list[dict[str, Any]] = []
        chosen = from_mapping(settings)
        job = prepare(text, sink=CallbackSink(lambda batch: found.extend(batch.to_pylist())))
        runner = LocalRunner(job, chosen) if checkpoint is None else LocalRunner(job, chosen, checkpoint)
        return Ran(found, "", runner.run())

    return run


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_every_form_gives_the_same_rows(format: str, run: Callable[..., Ran]) -> None:
    sources = [written(format, name, rows(seed)) for seed, name in enumerate("ab")]
    text = script(*sources, JOIN, COLUMNS)
    wanted = ordered(run(text.format(a="ts", b="ts")))
    assert len(wanted) > 20
    for a, b in [("ms", "seconds"), ("us", "text"), ("later", "plain"), ("iso", "ms")]:
        got = run(text.format(a=FORMS[a], b=FORMS[b]), batch_rows=25, slots=2)
        assert ordered(got) == wanted and got.summary.rows_late == 0, (a, b)


def test_windows_slide_and_checkpoints(run: Callable[..., Ran]) -> None:
    sources = [written("parquet", name, rows(seed)) for seed, name in enumerate("ab")]
    for select in (
        "SELECT window_end() AS t, COUNT(*) AS n, MAX(a.us) AS u FROM a [RANGE 20 SECONDS SLIDE 10 SECONDS]",
        "SELECT a.us AS x, b.us AS y FROM a [ROWS 3], b [ROWS 2] WHERE a.k = b.k",
    ):
        text = script(*sources, select)
        wanted = ordered(run(text.format(a="ts", b="ts")))
        form = text.format(a=FORMS["text"], b=FORMS["ms"])
        assert ordered(run(form, batch_rows=30, slots=3)) == wanted
        got = run(form, checkpoint=f"ck{len(select)}", batch_rows=30, slots=2, at_end="flush")
        assert ordered(got) == wanted


def test_the_expression_in_where_is_the_time(run: Callable[..., Ran]) -> None:
    """As a bound it makes rows expire; with a name of its own it is a column of the stream."""
    streams = {
        "a": el.stream(rows(1), time="epoch_ms(ms)", lateness="5 s"),
        "b": el.stream(rows(2), time="make_timestamp(us) AS at", lateness="5 s"),
    }
    bound = "SELECT a.us AS x, b.us AS y FROM a, b WHERE a.k = b.k AND epoch_ms(a.ms) - b.at BETWEEN {}"
    text = bound.format("INTERVAL '-2' SECOND AND INTERVAL '3' SECOND")
    assert "never expire" not in el.query(text, streams).explain()
    assert "never expire" in el.query("SELECT a.k FROM a, b WHERE a.k = b.k", streams).explain()
    found: list[dict[str, int]] = []
    summary = el.query(text, streams).start(sink=lambda batch: found.extend(batch.to_pylist())).wait(300)
    assert summary is not None and summary.rows_late == 0
    one, two = rows(1).to_pylist(), rows(2).to_pylist()
    wanted = [
        (a["us"], b["us"])
        for a in one
        for b in two
        if a["k"] == b["k"] and timedelta(seconds=-2) <= a["ts"] - b["ts"] <= timedelta(seconds=3)
    ]
    assert sorted((row["x"], row["y"]) for row in found) == sorted(wanted) and wanted
    names = el.query("SELECT * FROM b", streams).start(sink=lambda batch: found.append(batch.schema.names))
    names.wait(300)
    assert found[-1] == [*rows(1).column_names, "at"]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_rows_without_a_time_are_dead_and_say_why(checkpoint: bool, run: Callable[..., Ran]) -> None:
    Path("in.csv").write_text("id,day,n\n1,16.11.2026,1\n2,31.02.2026,2\n3,,3\n4,tomorrow,4\n5,17.11.2026,5\n")
    text = """
        CREATE STREAM s (id BIGINT, day VARCHAR, n BIGINT) USING csv OPTIONS (path 'in.csv')
            TIMESTAMP BY strptime(day, '%d.%m.%Y') + INTERVAL '1' DAY LATENESS 9 DAYS DEAD INTO dead;
        CREATE SINK dead USING json OPTIONS (path 'dead');
        SELECT id FROM s
    """
    settings = {"checkpoint": "ck", "at_end": "flush"} if checkpoint else {}
    ran = run(text, **settings)
    assert ordered(ran) == [(1,), (5,)]
    assert (ran.summary.rows_in, ran.summary.rows_dead, ran.summary.expression_errors) == (5, 3, 0)
    dead = [json.loads(line) for file in sorted(Path("dead").rglob("*.json")) for line in file.open()]
    begin = "the event time strptime(day, '%d.%m.%Y') + INTERVAL '1' DAY is NULL or out of range for day = "
    assert [(row["id"], row["n"], row["reason"]) for row in dead] == [
        ("2", "2", f"{begin}'31.02.2026'"),
        ("3", "3", f"{begin}NULL"),
        ("4", "4", f"{begin}'tomorrow'"),
    ]


def test_late_rows_are_as_they_were_read(run: Callable[..., Ran]) -> None:
    table = pa.table({"ms": [5000, 9000, 1000], "k": [1, 2, 3]})
    source = written("parquet", "a", table)
    text = f"""CREATE STREAM s USING {source} TIMESTAMP BY epoch_ms(ms) LATE INTO late;
        CREATE SINK late USING parquet OPTIONS (path 'late'); SELECT k FROM s"""
    assert run(text, batch_rows=1).summary.rows_late == 1
    assert pq.read_table("late").to_pylist() == [{"ms": 1000, "k": 3}]


@pytest.mark.parametrize(
    ("time", "answer"),
    [
        ("ms", r"stream s, time='ms': the time column 'ms' is BIGINT, .* write time='to_timestamp\(ms\)' if"),
        ("epoch_ms(sm)", "stream s, time=.*there is no column 'sm'; did you mean 'ms'"),
        ("nothing", "stream s, time='nothing': stream 's' has no column 'nothing'"),
        ("epoch_ms(", "stream s, time=.*never closed"),
        ("text AS ts", "stream s, time=.*strptime"),
        ("text", r"write time=\"strptime\(text, '%d.%m.%Y %H:%M:%S'\)\", with the format"),
    ],
)
def test_a_wrong_time_from_python(time: str, answer: str) -> None:
    streams = {"s": el.stream(pa.table({"ms": [1], "text": ["x"]}), time=time)}
    with pytest.raises(ScriptError, match=answer):
        el.query("SELECT ms FROM s", streams).start(sink=id)


def test_days_are_times_and_generated_streams_need_a_column(run: Callable[..., Ran]) -> None:
    days = pa.table({"day": pa.array([20000, 20001], pa.date32())})
    found: list[Any] = []
    text = "SELECT window_end() AS t, COUNT(*) AS n FROM s [RANGE 1 DAY SLIDE 1 DAY]"
    el.query(text, {"s": el.stream(days, time="day")}).start(sink=lambda b: found.extend(b.to_pylist())).wait(300)
    assert sorted(row["n"] for row in found) == [1, 1]
    with pytest.raises(EddylineError, match="generate makes the event times"):
        run("CREATE STREAM s (ms BIGINT) USING generate OPTIONS (rows 5) TIMESTAMP BY epoch_ms(ms); SELECT ms FROM s")


def test_columns_with_a_zone_are_in_one_zone(run: Callable[..., Ran]) -> None:
    """Whatever zone a file says: in UTC they are shown, computed with and bounded."""
    moments = pa.array([START, START + timedelta(minutes=40)], pa.timestamp("us"))
    for name, zone in (("a", "Europe/Berlin"), ("b", "Asia/Tokyo")):
        zoned = moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone))
        written("parquet", name, pa.table({"ts": zoned, "k": [1, 2]}))
    text = """
        CREATE STREAM a USING parquet OPTIONS (path 'a') TIMESTAMP BY ts;
        CREATE STREAM b USING parquet OPTIONS (path 'b') TIMESTAMP BY ts;
        SELECT a.ts, b.ts AS u, date_trunc('day', a.ts) AS day, extract(hour FROM b.ts) AS hour, a.ts = b.ts AS same,
            CAST(a.ts AT TIME ZONE 'Europe/Berlin' AS DATE) AS there
        FROM a, b WHERE a.k = b.k AND abs(a.ts - b.ts) <= INTERVAL '1' SECOND
    """
    assert not prepare_warnings(text)
    first, second = sorted(run(text).rows, key=lambda row: row["ts"])
    assert str(first["ts"].tzinfo) == str(first["u"].tzinfo) == "UTC" and first["same"]
    assert (first["hour"], second["hour"], first["there"]) == (23, 0, date(2026, 11, 17))
    assert [row["day"].replace(tzinfo=None) for row in (first, second)] == [datetime(2026, 11, n) for n in (16, 17)]


def prepare_warnings(text: str) -> list[str]:
    return warnings(prepare(text, sink=CallbackSink(id)).query)


def test_by_local_day(run: Callable[..., Ran]) -> None:
    """The day on which clocks change has 25 hours; with SLIDE 1 HOUR a local day is known an hour after it ends."""
    hours = [datetime(2026, 10, 24, 21, 30) + timedelta(hours=n) for n in range(30)]
    written("parquet", "a", pa.table({"ts": pa.array(hours, pa.timestamp("us", "UTC"))}))
    text = """
        CREATE STREAM a USING parquet OPTIONS (path 'a') TIMESTAMP BY ts;
        SELECT CAST(ts AT TIME ZONE 'Europe/Berlin' AS DATE) AS day, {} COUNT(*) AS n FROM a {}
        GROUP BY CAST(ts AT TIME ZONE 'Europe/Berlin' AS DATE)
    """
    wanted = {date(2026, 10, 24): 1, date(2026, 10, 25): 25, date(2026, 10, 26): 4}
    assert {row["day"]: row["n"] for row in run(text.format("", "")).rows} == wanted
    sliding = run(text.format("window_end() AS t,", "[RANGE 25 HOURS SLIDE 1 HOUR]")).rows
    ended = [row for row in sliding if row["t"] == datetime(2026, 10, 25, 23)]
    assert [(row["day"], row["n"]) for row in ended] == [(date(2026, 10, 25), 25)]
