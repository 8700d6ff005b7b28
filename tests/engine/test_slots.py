"""Several slots have the same results and counts as one, and are undone together."""

from __future__ import annotations

import random
from typing import Any

import pytest

from eddyline.plan.partition import PartitionEstimate, Partitioning, choices
from eddyline.plan.plan import Plan
from eddyline.protocol import home
from eddyline.settings import Settings
from lab.fuzz.outcome import counted
from tests.support.jobs import Job, Row

W = "[RANGE 12 MICROSECONDS]"
SLIDE = "[RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS]"
SELECTS = {
    "one key": f"SELECT a.k, b.x, c.x AS y FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.k = c.k",
    "chain": f"SELECT a.k, b.x, c.s FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.x = c.x",
    "types": f"SELECT a.k, b.f, c.s FROM a {W}, b {W}, c {W} WHERE a.k = b.f AND b.s = c.s",
    "theta": f"SELECT a.k, b.x FROM a {W}, b {W} WHERE a.k < b.k AND a.x + b.x > 3",
    "cross": f"SELECT a.k, b.x FROM a {W}, b {W}",
    "self": f"SELECT p.k, q.x FROM a {W} AS p, a {W} AS q, b {W} WHERE p.k = q.x AND q.k = b.k AND p.x > 0",
    "table": f"SELECT a.k, t.x FROM a {W}, t, b {W} WHERE a.k = t.k AND t.x = b.x",
    "one": f"SELECT a.k, a.x FROM a {W} WHERE a.x > 1",
    "rows": "SELECT a.k, b.x FROM a [ROWS 3], b [ROWS 5] WHERE a.k = b.k AND a.x > 0",
    "rows cross": "SELECT a.k, b.x, c.x AS y FROM a [ROWS 2], b [ROWS 2], c [RANGE 3 MICROSECONDS]",
    "rows self": "SELECT p.k, q.x FROM a [ROWS 3] AS p, a [ROWS 6] AS q WHERE p.k = q.x",
    "whole groups": f"SELECT a.k, COUNT(*) AS n, SUM(b.x) AS t FROM a {SLIDE}, b {SLIDE} WHERE a.k = b.k GROUP BY a.k",
    "groups": f"SELECT a.x, COUNT(DISTINCT b.s) AS n FROM a {SLIDE}, b {SLIDE} WHERE a.k = b.k GROUP BY a.x",
    "one group": f"SELECT COUNT(*) AS n, MAX(a.s) AS m FROM a {SLIDE}, b {SLIDE} WHERE a.k = b.k AND a.x < b.x",
    "rows groups": (
        f"SELECT b.x, COUNT(*) AS n FROM a [ROWS 5 SLIDE 4 MICROSECONDS], b {SLIDE} "
        "WHERE a.k = b.k GROUP BY b.x HAVING COUNT(*) > 1"
    ),
    "at the end": "SELECT a.s, AVG(b.x) AS m FROM a, b WHERE a.k = b.k GROUP BY a.s",
}
COLUMNS = "k x f:float s:string"
TABLE = [(k, x, 0.0, "") for k in range(4) for x in range(2)]


def job_of(name: str, **settings: Any) -> Job:
    select = SELECTS[name]
    items = select.partition(" FROM ")[2].partition(" WHERE ")[0].split(",")
    streams = {item.split()[0]: COLUMNS for item in items}
    tables = {"t": TABLE} if "t" in streams else {}
    late = {n: 6 for n in streams if n != "t"}
    return Job(select, Settings(check=True, **settings), late, tables, **streams)


def batch_for(job: Job, rng: random.Random, start: int) -> dict[str, list[Row]]:
    def rows() -> list[Row]:
        times = [start + rng.randrange(-5, 8) for _ in range(rng.choice([0, 6, 14]))]
        return [
            (t, rng.choice([0, 1, 2, 3, None]), rng.choice([0, 1, 2, None]), rng.choice([0.0, -0.0, 1.0, None]),
             rng.choice(["p", "q", None]))
            for t in times
        ]  # fmt: skip

    return {name: rows() for name in job.schemas if name != "t"}


def counts(job: Job) -> dict[str, Any]:
    return counted(job.engine.counts)


@pytest.mark.parametrize("slots", [2, 3, 8])
@pytest.mark.parametrize("name", SELECTS)
def test_the_rows_of_one_slot_batch_by_batch(name: str, slots: int) -> None:
    """Results come in the same batch, with the same counts, also after some batches were undone."""
    rng = random.Random(slots)
    job, twin = job_of(name, slots=slots, groups=rng.choice([7, 256])), job_of(name)
    assert len(job.engine.slots) == slots
    made = 0
    for start in range(0, 80, 8):
        if rng.random() < 0.4:
            before = job.engine.standing
            job.feed(commit=False, **batch_for(job, rng, start))
            job.engine.wind_back()
            assert job.engine.standing == before
        batch = batch_for(job, rng, start)
        found, wanted = job.feed(**batch), twin.feed(**batch)
        assert found == wanted
        assert counts(job) == counts(twin)
        made += len(found)
    found, wanted = job.end(), twin.end()
    assert found == wanted and made + len(found) > 2


@pytest.mark.parametrize("name", SELECTS)
def test_whatever_the_axes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests each partitioning that is possible for four slots."""
    twin = job_of(name)
    rng = random.Random(3)
    batches = [batch_for(twin, rng, start) for start in range(0, 40, 8)]
    wanted = [twin.feed(**batch) for batch in batches] + [twin.end()]
    found = list(choices(Plan(twin.query), 4))
    assert len(found) >= 3 or len(twin.query.sources) == 1
    for axes in found:
        made = Partitioning(4, 256, axes, PartitionEstimate(1, 1, 1))
        monkeypatch.setattr(home, "partition", lambda *_, made=made: made)
        job = job_of(name, slots=4)
        assert [job.feed(**batch) for batch in batches] + [job.end()] == wanted


@pytest.mark.parametrize("name", SELECTS)
def test_work_and_state_are_shared(name: str) -> None:
    """No slot builds all rows, and state that can be divided is not held eight times."""
    job = job_of(name, slots=8)
    rng = random.Random(1)
    for start in range(0, 64, 8):
        job.feed(**batch_for(job, rng, start))
    built = [sum(stem.built for stem in slot.executor.stems) for slot in job.engine.slots]
    assert max(built) < sum(built)
    assert job.engine.held.rows == sum(slot.state_rows for slot in job.engine.slots)
    assert job.engine.report().as_dict() and "8 slots" in job.engine.explain()


def test_errors_are_counted_as_in_one_slot() -> None:
    select = f"SELECT a.k // b.x AS d FROM a {W}, b {W} WHERE a.k = b.k AND a.x // a.k >= 0"
    seen = set()
    for slots in (None, 1, 2, 3, 8):
        rng, job = random.Random(2), Job(select, Settings(slots=slots), dict.fromkeys("ab", 6), a=COLUMNS, b=COLUMNS)
        for start in range(0, 160, 8):
            job.feed(commit=False, **batch_for(job, rng, start))
            job.engine.wind_back()
            job.feed(**batch_for(job, rng, start))
        seen.add((job.engine.counts.expression_errors, job.engine.counts.rows_out))
    ((errors, rows),) = seen
    assert errors > 3 and rows > 10


def test_equal_rows_of_a_rows_window_are_interchangeable_across_slots() -> None:
    """Rows that differ only in columns that the query does not use are in the same slot, whichever is counted first."""
    select = "SELECT a.k, b.x FROM a [ROWS 2], b WHERE a.k <= b.k"
    rows = [(5, 1, n, 0.0, str(n)) for n in range(6)]
    for order in (1, -1):
        job = Job(select, Settings(slots=8), a=COLUMNS, b=COLUMNS)
        job.feed(a=rows[::order], b=[(6, 1, 9, 0.0, "")])
        assert job.end() == [(1, 9), (1, 9)]
