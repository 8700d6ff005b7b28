"""ROWS windows: the last n rows of the stream at t*, including ties, counted before WHERE."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.slide import Slide
from eddyline.codec import as_json, of_json, packed, unpacked
from eddyline.routing.rows_windows import MARKS, RowsCounted, RowsWindow, RowsWindowSnapshot
from eddyline.settings import Settings
from eddyline.state.arena import Arena
from eddyline.state.part import Cut
from tests.support.jobs import Job
from tests.support.properties import examples

# The window


def test_a_window_counts_the_rows_up_to_a_time() -> None:
    window = RowsWindow(Arena(), 2)
    assert window.append(np.array([1, 3, 3])).tolist() == [0, 1, 2]
    assert window.append(np.array([3, 7])).tolist() == [3, 4]
    assert window.least(np.array([0, 1, 2, 3, 6, 7, 9])).tolist() == [-2, -1, -1, 2, 2, 3, 3]


def test_a_window_releases_times_but_keeps_their_number() -> None:
    window, times = RowsWindow(Arena(), 3), []
    rng = random.Random(1)
    for start in range(0, 20_000, 100):
        new = sorted(rng.randrange(start, start + 100) for _ in range(50))
        window.append(np.array(new))
        times += new
        asked = np.array([start, start + 50, start + 99])
        assert window.least(asked).tolist() == [sum(t <= a for t in times) - 3 for a in asked.tolist()]
        window.commit(Cut(None, start + 100, None))
        assert window.state_bytes <= 8 * 50
    assert window.rows == 10_000


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30), st.integers(0, 40)), min_size=1, max_size=12),
    st.sampled_from([Slide(4), Slide(4, 3, gap=1), Slide(4, 1)]),
)
@examples(200)
def test_boundaries_that_the_watermark_has_passed(batches: list[tuple[int, int, int]], slide: Slide) -> None:
    """They are asked for until they are emitted, also after a restart."""
    window, times, watermark, emitted = RowsWindow(Arena(), 3, slide), list[int](), 0, 0
    for number, (rows, ahead, behind) in enumerate(batches):
        new = sorted(random.Random(f"{number} {rows}").choices(range(watermark, watermark + ahead + 1), k=rows))
        watermark += ahead + 1
        window.append(np.array(new, np.int64))
        times += new
        emitted = max(emitted, slide.number_upto(watermark - behind))
        saved = of_json(as_json(window.counted(watermark, slide.at(emitted))), RowsCounted)
        window.commit(Cut(None, watermark, slide.at(emitted)))
        other = RowsWindow(Arena(), 3, slide)
        other.start_at(saved)
        asked = np.array([*range(slide.at(emitted), watermark, 4), watermark, watermark + 7])
        for one in (window, other):
            assert one.least(asked).tolist() == [sum(t <= a for t in times) - 3 for a in asked.tolist()]
            assert len(saved.passed) <= 2 + max(0, slide.number_upto(watermark) - emitted + 1)


def test_a_window_wound_back() -> None:
    window = RowsWindow(Arena(), 1)
    window.append(np.array([1, 2]))
    window.commit(Cut(None, 2, None))
    window.append(np.array([3, 4]))
    window.wind_back()
    assert window.rows == 2
    assert window.append(np.array([2, 9])).tolist() == [2, 3]
    assert window.least(np.array([2, 5, 9])).tolist() == [2, 2, 3]


def test_a_window_continues_in_another_process_or_from_a_number(tmp_path: Path) -> None:
    arena = Arena(str(tmp_path))
    window = RowsWindow(arena, 5)
    window.append(np.arange(20_000))
    window.commit(Cut(None, 15_000, None))
    window.append(np.arange(20_000, 20_003))
    saved = packed(window.saved())
    arena.close()
    again = RowsWindow(Arena(str(tmp_path)), 5)
    again.restore(unpacked(saved, RowsWindowSnapshot))
    asked = np.array([15_000, 19_999, 20_001, 30_000])
    assert again.least(asked).tolist() == window.least(asked).tolist() == [14_996, 19_995, 19_997, 19_998]
    assert again.state_bytes == window.state_bytes
    again.wind_back()
    assert again.rows == 20_000
    new = RowsWindow(Arena(), 5)
    new.start_at(RowsCounted(20_000, ()))
    assert new.append(np.array([20_000])).tolist() == again.append(np.array([20_000])).tolist() == [20_000]
    assert new.least(asked[1:]).tolist() == again.least(asked[1:]).tolist()
    new.wind_back()
    assert new.rows == 20_000 and new.state_bytes == 0


def test_rows_whose_times_are_needed_are_counted_again() -> None:
    window = RowsWindow(Arena(), 3)
    window.append(np.arange(100))
    window.commit(Cut(None, 40, None))  # rows of time 40 wait for an answer
    again = RowsWindow(Arena(), 3)
    again.start_at(of_json(as_json(window.counted(40, None)), RowsCounted))
    again.recount(np.arange(30, 100))
    asked = np.array([40, 70, 200])
    assert again.least(asked).tolist() == window.least(asked).tolist() == [38, 68, 97]
    assert again.rows == 100 and again.append(np.array([100])).tolist() == [100]
    again.wind_back()
    assert again.rows == 100
    assert window.horizon(None) == again.horizon(None) and (again.horizon(40) or 0) <= 38


@pytest.mark.parametrize("size", [1, 2, 7, 40, 400])
def test_a_window_knows_how_old_its_rows_are(size: int) -> None:
    """Rows older than the horizon are not among the last ones; and the rows newer than it are not many more than the
    window."""
    rng, window, times, known = random.Random(size), RowsWindow(Arena(), size), list[int](), False
    for step in range(300):
        release = sorted(rng.randrange(step * 10, step * 10 + 10) for _ in range(rng.randrange(8)))
        window.append(np.array(release, np.int64))
        if rng.random() < 0.1:
            window.wind_back()
        else:
            times += release
            window.commit(Cut(None, step * 10 + 10, None))
        if rng.random() < 0.1:  # restored from the small state, as in another slot
            small = window.counted(step * 10 + 10, None)
            window = RowsWindow(Arena(), size)
            window.start_at(of_json(as_json(small), RowsCounted))
        horizon = window.horizon(None)
        assert window.rows == len(times) and len(window._marks) <= MARKS + 2
        assert horizon is None or all(time >= horizon for time in times[-size:])
        assert horizon is None or sum(time >= horizon for time in times) < size * (1 + 1 / MARKS) + 16
        assert horizon is not None or len(times) < size * (1 + 1 / MARKS) + 16
        known |= horizon is not None
    assert known


# On the engine

LAST = "SELECT a.k, b.k AS j FROM a [ROWS 2], b [RANGE 100 MICROSECONDS]"


def test_nothing_comes_before_the_watermark_passed_it() -> None:
    job = Job(LAST, a="k", b="k")
    assert job.feed(a=[(1, 1), (2, 2), (3, 3)], b=[(3, 9)]) == []
    assert job.engine.held.rows == 4
    assert job.feed(a=[(4, 4)], b=[(4, 8)]) == [(2, 9), (3, 9)]
    assert job.end() == [(3, 8), (4, 8), (4, 9)]


def check(job: Job, wanted: list[tuple], **rows: list[tuple]) -> None:
    """Feed one batch and the end, and compare the rows."""
    found = sorted(job.feed(**rows) + job.end(), key=repr)
    assert found == job.expected() == wanted


def test_the_window_is_that_at_the_newest_component() -> None:
    """An old b matches each new a; an a that newer rows pushed out of the window never matches a new b."""
    check(Job(LAST, a="k", b="k"), [(1, 9), (2, 9), (3, 9)], a=[(1, 1), (2, 2), (3, 3)], b=[(2, 9)])
    check(Job(LAST, a="k", b="k"), [(2, 9), (3, 9)], a=[(1, 1), (2, 2), (3, 3)], b=[(3, 9)])


def test_ties_belong_to_the_window_by_their_values() -> None:
    check(Job(LAST, a="k", b="k"), [(2, 9), (3, 9)], a=[(5, 3), (5, 1), (5, 2)], b=[(5, 9)])


def test_equal_rows_are_interchangeable() -> None:
    check(Job(LAST, a="k other", b="k"), [(1, 9), (1, 9)], a=[(5, 1, 9), (5, 1, 7), (5, 1, 8)], b=[(5, 9)])


def test_rows_are_counted_before_where() -> None:
    job = Job(LAST + " WHERE a.k < 10", a="k", b="k")
    check(job, [(1, 9), (2, 9)], a=[(1, 1), (2, 2), (3, 30), (4, 40)], b=[(2, 9), (4, 8)])


def test_null_keys_count_too() -> None:
    job = Job(LAST + " WHERE a.k = b.k", a="k", b="k")
    check(job, [(9, 9)], a=[(1, 9), (2, None), (3, None)], b=[(1, 9), (3, 9)])


def test_a_window_of_one_stream_alone() -> None:
    check(Job("SELECT a.k FROM a [ROWS 1]", a="k"), [(2,), (3,)], a=[(1, 1), (1, 2), (2, 3)])


def test_state_is_the_window() -> None:
    job = Job(LAST + " WHERE a.k = b.k", a="k", b="k")
    for t in range(0, 20_000, 100):
        job.feed(a=[(t + i, i) for i in range(100)], b=[(t + i, i) for i in range(100)])
    stem = job.engine.slot.executor.stems[0]
    assert stem.held <= 2
    assert job.engine.held.rows <= 2 + 101 + 2


def test_slides_look_at_the_window_at_each_boundary() -> None:
    job = Job(
        "SELECT COUNT(*) AS n, SUM(a.k) AS s, window_end() AS t "
        "FROM a [ROWS 2], b [RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS]",
        a="k",
        b="k",
    )
    found = job.feed(a=[(1, 1), (2, 2), (13, 4)], b=[(1, 0), (25, 0)])
    found += job.feed(a=[(45, 8)], b=[(31, 0)])
    found += job.end()
    wanted = job.expected()
    assert sorted(found, key=repr) == wanted
    assert [(n, int(s)) for n, s, _ in sorted(found, key=lambda r: r[2])][:3] == [(2, 3), (2, 6), (2, 6)]


QUERIES = [
    "SELECT a.k, b.x, c.x AS cx FROM a [ROWS 3], b [ROWS 2], c [RANGE 4 MICROSECONDS] WHERE a.k = b.k AND b.x <= c.x",
    "SELECT p.x, q.x AS qx FROM a [ROWS 3] AS p, a [ROWS 5] AS q WHERE p.k = q.k",
    "SELECT a.x, t.x AS tx FROM a [ROWS 3], t, b [ROWS 4] WHERE a.k = t.k AND b.k = a.x",
    "SELECT a.k, COUNT(*) AS n, SUM(b.x) AS s, window_end() AS t "
    "FROM a [ROWS 4], b [RANGE 12 MICROSECONDS SLIDE 4 MICROSECONDS] WHERE a.k = b.k GROUP BY a.k",
    "SELECT COUNT(*) AS n FROM a [ROWS 4], b [ROWS 2] WHERE a.k <> b.k",
    "SELECT a.x FROM a [ROWS 2], b WHERE a.k = b.k AND ABS(a.ts - b.ts) <= INTERVAL '3' MICROSECOND",
]


@pytest.mark.parametrize("select", QUERIES)
def test_as_the_definition_for_every_cut(select: str) -> None:
    for seed in range(6):
        rng = random.Random(seed)
        names = [n for n in "abc" if f" {n} " in select or f" {n}," in select]
        tables = {"t": [(i % 3, i) for i in range(4)]} if " t" in select and "t.k" in select else {}
        rows = {
            n: [(rng.randrange(40), rng.choice([0, 1, 2, None]), rng.randrange(4)) for _ in range(25)] for n in names
        }
        results = []
        for cut in range(3):
            columns = dict.fromkeys([*names, *tables], "k x")
            job = Job(select, Settings(check=True, packet=rng.choice([1, 5, 99])), tables=tables, **columns)
            left, found = {n: list(r) for n, r in rows.items()}, []
            while any(left.values()):
                upto = min(r[0] for rows_left in left.values() for r in rows_left) + rng.randrange(1, 15)
                batch = {}
                for n in names:
                    batch[n] = [r for r in left[n] if r[0] < upto]
                    rng.shuffle(batch[n])
                    left[n] = [r for r in left[n] if r[0] >= upto]
                found += job.feed(**batch)
            found += job.end()
            assert job.engine.counts.rows_late == 0
            results.append(sorted(found, key=repr))
            assert results[-1] == results[0] == job.expected(), cut
