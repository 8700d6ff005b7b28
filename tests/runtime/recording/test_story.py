"""A record as sentences: a small one made by hand, beside its golden text, and records that end early."""

from __future__ import annotations

import pytest

from eddyline.errors import SettingError
from eddyline.runtime.recording.moment import moment, time_of
from eddyline.runtime.recording.story import Told, story, told
from tests.support.events import RUN, decision, outcome, sample

ROUTES = "c, b instead of b, c", "b, c instead of c, b"
SAME = "an interval has passed; 0.2 -> 0.2 of a core, 1 MB -> 1 MB"
VERDICT = "the plan stays: it takes 0.11 of a core, 0.4 before the change"
BETTER = (
    "an interval has passed; selectivity 0-1 0.1 -> 0.001, rate 2 10 -> 20; 0.4 -> 0.1 of a core, 1 MB -> 2 MB;"
    " by moving state"
)
RECORD = [
    RUN,
    sample(1, 10),
    *(
        decision(2.0 + n / 10, n, "route", f"a: {ROUTES[n % 2]}", f"reason {n}")
        for n in range(1, 8)
    ),
    *(outcome(4.0, n, [None, True, False][n % 3], "5 us a tuple, 6 before") for n in range(1, 7)),
    sample(5, 10),
    decision(6.0, 8, "plan", "(a b c) stays", SAME),
    decision(7.0, 9, "plan", "(a b c) stays, not ((a b) c)", SAME),
    decision(
        8.0, 10, "plan", "(a b c) -> ((a b) c)",
        BETTER,
        measured={"rate a": 5e4, "rate b": 5e4},
        expected={"cpu before": 0.4, "cpu": 0.1, "memory before": 1e6, "memory": 2e6, "move seconds": 0.25},
    ),
    decision(9.0, 11, "migration", "(a b c) -> ((a b) c) by moving state", "90 rows in 2 batches and 0.3 s"),
    decision(12.0, 12, "trial", "the trial of ((a b) c) is over", VERDICT),
    outcome(12.0, 10, True, VERDICT),
    sample(13, 10, "((a b) c)"),
    decision(14.0, 13, "idle", "c is idle", "no row for 5 s; it does not hold the watermark back"),
    *(
        decision(20.0 + n, 13 + n, "spill", f"{n} groups leave memory", "it is full",
                 measured={"groups": n, "bytes": 1e6})
        for n in range(1, 6)
    ),
    {"type": "a kind of later versions", "t": 26.0},
    {"type": "note", "t": 27.0, "level": "warning", "text": "rows of a are nearly all dead"},
    sample(28, 10, "((a b) c)"),
    {"type": "end", "t": 28.5, "status": "done", "summary": {}, "error": None},
]  # fmt: skip
GOLDEN = """\
Run of 2026-11-18 23:59:50 UTC (local engine, 1 slot), 28.5 s: done.
28,000 rows in, 28 rows out, 1,000 rows/s on average.
It began with the plan (a b c).

From 2.1 s to 2.7 s: Routes changed 7 times. Afterwards: a -> b, c. The last change: reason 7. 2 paid, 2 did not, and \
for 3 it cannot be told.
From 6.0 s to 7.0 s: The optimizer looked 2 times for a better plan and kept its own, at last (a b c).
At 8.0 s: The run changed its plan from (a b c) to ((a b) c), because a regular check found that the data changed: \
selectivity of a and b 0.1 -> 0.001, rate of c 10 -> 20. Expected: 1 us of CPU a row in place of 4, 2 MB of state in \
place of 1 MB; the change itself: 0.25 s of CPU. The migration was over at 9.0 s: 90 rows in 2 batches and 0.3 s. It \
paid: the plan stays: it takes 0.11 of a core, 0.4 before the change.
At 14.0 s: c is idle, because no row for 5 s; it does not hold the watermark back.
From 21.0 s to 25.0 s: 5 decisions of the kind spill (15 groups, 5 MB in all). The last: 5 groups leave memory, \
because it is full.
At 27.0 s: warning: rows of a are nearly all dead.

Decisions: 7 route, 5 spill, 3 plan, 1 migration, 1 trial, 1 idle.
Changes with an outcome: 3 paid, 2 did not, and for 2 it cannot be told.
"""
AT_NINE = """\
At 9.5 s (the sample of 5.0 s): 5,000 rows in, 5 out, 1,000 rows/s, state 10 rows, 2 MB.
The plan was (a b c).
  At 8.0 s: The run changed its plan from (a b c) to ((a b) c), because a regular check found that the data changed: \
selectivity of a and b 0.1 -> 0.001, rate of c 10 -> 20. Expected: 1 us of CPU a row in place of 4, 2 MB of state in \
place of 1 MB; the change itself: 0.25 s of CPU. The migration was over at 9.0 s: 90 rows in 2 batches and 0.3 s. It \
paid: the plan stays: it takes 0.11 of a core, 0.4 before the change.
Rows of a went to b by a.k = b.k, then c by b.k = c.k (90 % of its tuples).
  At 2.7 s: tuples of a visit b, c instead of c, b, because reason 7.
In the ten seconds before:
  At 9.0 s: (a b c) -> ((a b) c) by moving state, because 90 rows in 2 batches and 0.3 s.
"""


def test_the_golden_text() -> None:
    assert "\n".join(story(told(RECORD))) + "\n" == GOLDEN


def test_the_golden_text_of_a_moment() -> None:
    assert "\n".join(moment(told(RECORD), 9.5)) + "\n" == AT_NINE


def test_a_note_divides_what_came_before_it_from_what_came_after() -> None:
    routes = [decision(1 + n, n, "route", f"a: {ROUTES[n % 2]}", "it is cheaper") for n in range(1, 9)]
    note = {"type": "note", "t": 5.5, "level": "info", "text": "now b is rare"}
    lines = [line[:43] for line in story(told([RUN, *routes[:4], note, *routes[4:]]))]
    assert lines[2:5] == [
        "From 2.0 s to 5.0 s: Routes changed 4 times",
        "At 5.5 s: now b is rare.",
        "From 6.0 s to 9.0 s: Routes changed 4 times",
    ]


def test_before_the_first_sample_nothing_was_measured() -> None:
    assert [*moment(told(RECORD), 0.5)] == ["At 0.5 s nothing was measured yet; the first sample is of 1.0 s."]
    assert [*moment(told([RUN]), 0.0)] == ["At 0.0 s nothing was measured yet."]


def test_a_record_may_end_anywhere() -> None:
    for length in range(1, len(RECORD)):
        lines = [*story(told(RECORD[:length]))]
        assert "the record has no end: the run goes on, or was killed." in lines[0]
        assert length > 2 or "Nothing was changed." in lines


def test_a_run_that_failed() -> None:
    end = {"type": "end", "t": 2.0, "status": "failed", "summary": {}, "error": "the sink is full."}
    assert (
        next(story(told([RUN, end])))
        == "Run of 2026-11-18 23:59:50 UTC (local engine, 1 slot), 2.0 s: failed: the sink is full."
    )


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("12.5", 12.5),
        ("0", 0.0),
        ("23:59:59", 9.0),
        ("00:00:10", 20.0),
        ("00:00:10.5Z", 20.5),
        ("2026-11-19 00:00:01", 11.0),
    ],
)
def test_times(text: str, t: float) -> None:
    assert time_of(text, told(RECORD)) == t


@pytest.mark.parametrize("text", ["99", "12:00", "2026-11-17T23:59:59"])
def test_times_that_are_not_in_the_record(text: str) -> None:
    with pytest.raises(SettingError, match=r"is not within the record, which is from 0 to 28.5 s$"):
        time_of(text, told(RECORD))


@pytest.mark.parametrize("text", ["noon", "-1", "", "1e9", "25:61:00 o'clock"])
def test_texts_that_are_no_times(text: str) -> None:
    with pytest.raises(
        SettingError, match=r"write seconds of the run, such as 12.5, or a time in UTC, such as 20:15:30$"
    ):
        time_of(text, Told(RUN))
