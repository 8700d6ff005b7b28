"""Partition groups move from one slot to another by parallel track: every result is made once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from eddyline.balance.slot_map import SlotMap
from eddyline.errors import InternalError
from eddyline.protocol.ledger import Moves
from tests.support.durable_world import Row, World, in_one_slot
from tests.support.spilling import group_of

GROUPS = 8
KEYS = range(24)
BATCHES: list[dict[str, list[Row]]] = [
    {"a": [(t, key) for key in KEYS], "b": [(t + 1, key) for key in KEYS if key % 3]} for t in range(1, 90, 6)
]
"""A window of 20 is a little more than three batches; rows of three or four batches have the same slides."""
SLIDES: dict[str, Any] = {
    "windows": ("RANGE 40 MICROSECONDS SLIDE 20 MICROSECONDS",) * 2,
    "outputs": ("count(*) AS n", "sum(b.k + a.k) AS d", "window_end() AS w"),
}
TO_1 = (0, 1, 2)
"""Groups of slot 0 that move to slot 1."""

Then = Callable[[SlotMap], SlotMap | None]
"""(the map of a batch) -> that of the next one; None: the same."""


def begin(now: SlotMap) -> SlotMap:
    return now.tracked(TO_1, to=1)


def another(now: SlotMap) -> SlotMap:
    return now.tracked([5], to=0)


THEN: dict[int, Then] = {2: begin, 4: another}
"""By batch how the map changes after it: a track begins early, and another later."""


def world(folder: Path, **options: Any) -> World:
    return World(folder, **{"slots": 3, "groups": GROUPS, "balance": "parallel-track", **options})


expected = partial(in_one_slot, BATCHES)


def map_now(job: World) -> SlotMap:
    """The map of the batch that is next."""
    return job.coordinator.commit.next_map or SlotMap(3, GROUPS)


def batch(job: World, number: int, then: Then | None = None, moves: Moves = Moves()) -> SlotMap:  # noqa: B008
    """A batch, and how the map changes after it; returns its map."""
    to = None if then is None else then(map_now(job))
    found = job.batch(to=to, then=moves, **BATCHES[number]).slot_map
    assert found is not None
    return found


def run(job: World, then: dict[int, Then] = THEN, moves: Sequence[Moves] = ()) -> list[SlotMap]:
    every = [*moves, *[Moves()] * len(BATCHES)]
    maps = [batch(job, number, then.get(number), every[number]) for number in range(len(BATCHES))]
    job.batch("end", ended=["a", "b"])
    return maps


@pytest.mark.parametrize("host", [None, "host"])
def test_tracks_begin_and_end(host: str | None, tmp_path: Path) -> None:
    job = world(tmp_path, host=host)
    maps = run(job)
    assert job.results == expected(tmp_path) and len(job.results) > 100
    assert [len(m.tracks) for m in maps] == [0, 0, 0, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0]
    assert maps[-1].places.tolist() == [1, 1, 1, 1, 1, 0, 2, 2]


def results_by_slot(job: World, number: int) -> list[list[tuple[int, int, int]]]:
    """Take a batch; the results of each slot."""
    job._to = None
    decision, found = job.begin(), []
    records = []
    for slot in range(3):
        turn = job.turn(decision, slot, **BATCHES[number])
        records.append(turn.record)
        rows = [job.sink._staged[file] for staged in turn.record.staged for file in staged.files]
        found.append([tuple(row.values()) for batches in rows for b in batches for row in b.to_pylist()])
    job.coordinator.finish(decision, records)
    return found


def test_the_sender_makes_results_with_an_old_row_and_the_receiver_the_others(tmp_path: Path) -> None:
    job = world(tmp_path, host=None)
    for number in range(3):
        batch(job, number, THEN.get(number))
    began = BATCHES[3]["a"][0][0]
    for number in (3, 4):
        sender, receiver, _ = (
            [sorted((a.microsecond, b.microsecond)) for a, b, key in made if group_of(key, GROUPS) in TO_1]  # type: ignore[attr-defined]
            for made in results_by_slot(job, number)
        )
        assert sender and all(oldest < began for oldest, _ in sender)
        assert receiver and all(oldest >= began for oldest, _ in receiver)


def test_the_receiver_opens_nothing_and_the_sender_forgets_at_the_end(tmp_path: Path) -> None:
    job = world(tmp_path, host=None)

    def of_track(slot: int) -> int:
        return sum(
            int(sum(stem.rows.groups(slice(stem.rows.min_live, stem.built)) < len(TO_1)))
            for stem in job.slot(slot).executor.source_stems
        )

    for number in range(3):
        batch(job, number, THEN.get(number))
    here = [sum(group_of(key, GROUPS) in TO_1 for _, key in batch["a"] + batch["b"]) for batch in BATCHES]  # type: ignore[arg-type]
    assert (of_track(0), of_track(1)) == (sum(here[:3]), 0)
    batch(job, 3)
    assert (of_track(0), of_track(1)) == (sum(here[:4]), here[3])
    while map_now(job).tracks:
        batch(job, job.coordinator.commit.batch + 1)
    kept = of_track(1)
    batch(job, job.coordinator.commit.batch + 1)
    assert of_track(0) == 0 < kept
    assert job.slot(1).executor.eddy.decisions.counts["migration"] == 0


@pytest.mark.parametrize("plan", ["mjoin", "(a b)", "((a)+ b)", "((a)+ (b)+)"])
def test_aggregates_of_groups_on_tracks(plan: str, tmp_path: Path) -> None:
    job = world(tmp_path, plan=plan, **SLIDES)
    run(job)
    assert job.results == expected(tmp_path, **SLIDES)


def test_a_turn_that_is_taken_again(tmp_path: Path) -> None:
    job = world(tmp_path)
    for number in range(len(BATCHES)):
        decision = job.begin()
        for slot in range(3):
            job.turn(
                decision, slot, **BATCHES[number]
            )  # the batch fails after it: its state is there and is wound back
        batch(job, number, THEN.get(number))
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path)


@pytest.mark.parametrize("options", [{}, {**SLIDES, "plan": "((a)+ b)"}])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_slots_whose_state_is_lost_know_which_rows_are_old(every: int, options: dict[str, Any], tmp_path: Path) -> None:
    job = world(tmp_path, **options)
    for number in range(len(BATCHES)):
        job = world(tmp_path, sink=job.sink, host=f"host{number // every % 2}", **options)
        batch(job, number, THEN.get(number))
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path, **options)


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_another_number_of_slots_ends_tracks(slots: int, tmp_path: Path) -> None:
    job = world(tmp_path)
    for number in range(6):
        batch(job, number, THEN.get(number))
    assert len(map_now(job).tracks) == 2
    other = world(tmp_path, slots=slots, sink=job.sink)
    for rows in BATCHES[6:]:
        found = other.batch(**rows).slot_map
        assert found is None or found == SlotMap(slots, GROUPS)
    other.batch("end", ended=["a", "b"])
    assert other.results == expected(tmp_path)


def test_groups_on_tracks_leave_memory_and_are_swept(tmp_path: Path) -> None:
    moves = [
        Moves(),
        Moves(leave=(0, 6)),
        Moves(),
        Moves(leave=(1, 5)),
        Moves(sweep=(0, 1)),
        Moves(leave=(2,), cool=(2,)),
    ]
    job = world(tmp_path)
    run(job, moves=[*moves, Moves(), Moves(sweep=(2, 5, 6), warm=(2,)), *moves])
    assert job.results == expected(tmp_path)


GIVEN_UP: list[dict[int, Then]] = [
    {4: lambda now: now.ended(TO_1)},
    {4: lambda now: now.moved(TO_1, to=0)},
    {4: lambda now: now.moved(TO_1, to=2)},
    {4: lambda now: now.moved(TO_1[:1], to=2), 5: lambda now: now.ended(TO_1[1:2])},
    {4: lambda now: now.moved(TO_1, to=0), 5: begin},
    {4: lambda now: now.ended(TO_1).tracked(TO_1, to=0), 7: lambda now: now.ended(TO_1)},
    {4: lambda now: now.moved(TO_1, to=0).tracked(TO_1, to=1), 7: lambda now: now.ended(TO_1)},
    {4: lambda now: now.moved(TO_1, to=2).tracked(TO_1, to=1), 7: lambda now: now.moved(TO_1, to=0)},
]
"""A track is given up for the receiver, the sender, or another slot; another begins after it, or at once."""


@pytest.mark.parametrize("options", [{}, {**SLIDES, "plan": "((a)+ b)"}])
@pytest.mark.parametrize("given_up", GIVEN_UP)
@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.share(9, 3)
def test_tracks_that_are_given_up(
    lost: bool, given_up: dict[int, Then], options: dict[str, Any], tmp_path: Path
) -> None:
    job, then = world(tmp_path, **options), {2: begin, 3: lambda now: now.tracked([3, 4], to=0), **given_up}
    for number in range(len(BATCHES)):
        if lost:
            job = world(tmp_path, sink=job.sink, host=f"host{number // 2 % 2}", **options)
        batch(job, number, then.get(number))
    job.batch("end", ended=["a", "b"])
    assert job.results == expected(tmp_path, **options)


def test_a_track_does_not_change_before_it_is_over(tmp_path: Path) -> None:
    job = world(tmp_path)
    for number in range(4):
        batch(job, number, THEN.get(number))
    now = map_now(job)
    with pytest.raises(InternalError, match="a parallel track changes before it is over"):
        batch(job, 4, lambda _: SlotMap.of(3, [2] * GROUPS, now.tracks))


def test_a_query_with_a_rows_window_has_no_tracks(tmp_path: Path) -> None:
    job = world(tmp_path, windows=("ROWS 3", "RANGE 20 MICROSECONDS"))
    with pytest.raises(InternalError, match="ROWS window"):
        batch(job, 0, begin)


def test_a_track_without_windows_never_ends(tmp_path: Path) -> None:
    options: dict[str, Any] = {"windows": ("UNBOUNDED", "UNBOUNDED")}
    job = world(tmp_path, **options)
    assert run(job)[-1].tracks
    assert job.results == expected(tmp_path, **options)


def test_tracks_are_in_the_commit_and_in_the_history(tmp_path: Path) -> None:
    world(tmp_path / "0")  # both jobs begin with the history of one checkpoint
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    jobs = [world(tmp_path / name) for name in "01"]
    for job, then in zip(jobs, (begin, lambda now: now.moved(TO_1, to=1)), strict=True):
        batch(job, 0, then)
    assert len({job.coordinator.commit.history for job in jobs}) == 1
    assert len({job.begin().after for job in jobs}) == 2
    (track,) = world(tmp_path / "0").coordinator.commit.next_map.tracks  # type: ignore[union-attr]
    assert (track.groups, track.sender, track.epoch, track.newest) == (TO_1, 0, 1, {"a": 1, "b": 2})
