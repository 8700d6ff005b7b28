"""More text than an Arrow array can hold: the engine divides packets and results itself. The tests lower the limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from eddyline.engine.tuning import DEFAULT, EngineTuning, Tuning
from eddyline.routing import payload
from eddyline.routing.tuning import RoutingTuning
from eddyline.settings import Settings
from eddyline.state.tuning import StateTuning
from tests.support.jobs import Job

HEAP = Tuning(state=StateTuning(text_bytes=100))
GATHERED = Tuning(routing=RoutingTuning(gathered_bytes=200), engine=EngineTuning(result_text=50))
LIMITS = {"heap": HEAP, "gathered": GATHERED, "both": replace(GATHERED, state=HEAP.state)}
QUERIES = {
    "rows": "SELECT a.t AS x, b.t AS y FROM a, b",
    "selection": "SELECT a.k AS x, b.k AS y FROM a, b WHERE length(a.t) + length(b.t) > 20 AND a.t || b.t <> 'no'",
    "groups": "SELECT a.t AS x, COUNT(*) AS y, COUNT(DISTINCT b.t) AS z, MIN(b.t) AS w FROM a, b GROUP BY a.t",
    "slides": """SELECT a.t AS x, COUNT(DISTINCT b.t) AS y, MAX(a.t || b.t) AS z, window_end() AS w
                 FROM a [RANGE 20 SECONDS SLIDE 10 SECONDS], b [RANGE 20 SECONDS SLIDE 10 SECONDS] GROUP BY a.t""",
}
ROWS = {name: [(i * 1_000_000, i, f"{name}{i:02}" * (1 + i // 4)) for i in range(20)] for name in "abc"}


def run(select: str, settings: Settings, tuning: Tuning = DEFAULT) -> list[str]:
    """The results of a query over streams of texts, read in two batches."""
    names = [name for name in ROWS if f"{name}.t" in select or f"{name}.k" in select]
    job = Job(select, settings, tuning=tuning, **dict.fromkeys(names, "k t:string"))
    found = [row for part in (slice(10), slice(10, 20)) for row in job.feed(**{n: ROWS[n][part] for n in names})]
    return sorted(map(str, found + job.end()))


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("name", QUERIES)
def test_results_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch, name: str, slots: int, limits: str) -> None:
    expected = run(QUERIES[name], Settings(slots=slots))
    sizes: list[int] = []
    gather = payload.Payload.gather

    def noted(self: payload.Payload, packet: object, exprs: object) -> object:
        values = gather(self, packet, exprs)  # type: ignore[arg-type]
        sizes.append(sum(array.nbytes for array in values.values()))
        return values

    monkeypatch.setattr(payload.Payload, "gather", noted)
    assert len(expected) > 3 and run(QUERIES[name], Settings(slots=slots), LIMITS[limits]) == expected
    assert sizes and (limits == "heap" or max(sizes) <= 200)


@pytest.mark.parametrize("plan", ["((a b) c)", "((a b)+ c)", "((a)+ b c)"])
def test_groups_below_a_join(plan: str) -> None:
    window = "[RANGE 20 SECONDS SLIDE 10 SECONDS]"
    select = f"""SELECT b.t AS x, MIN(a.t) AS y, COUNT(*) AS z, window_end() AS w
                 FROM a {window}, b {window}, c {window}
                 WHERE a.k = b.k AND b.k = c.k GROUP BY b.t"""
    expected = run(select, Settings(plan="mjoin"))
    tuning = replace(LIMITS["both"], engine=EngineTuning(result_rows=8))
    assert len(expected) > 3 and run(select, Settings(plan=plan), tuning) == expected
