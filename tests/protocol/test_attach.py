"""A slot that moves between processes gives the same rows as one that stays; a doubtful state counts as lost."""

from __future__ import annotations

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import cache, partial
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.model import BoundQuery
from eddyline.codec import packed, unpacked
from eddyline.engine.slot import Slot
from eddyline.engine.tuning import DEFAULT, Tuning
from eddyline.errors import InternalError, JobError
from eddyline.protocol import attach
from eddyline.protocol.attach import close, fingerprint, open_slot, save
from eddyline.settings import Settings
from eddyline.state.log.sealed import sealed, unsealed
from eddyline.state.part import named
from eddyline.testing.compare import difference
from eddyline.testing.oracle import Oracle
from lab.batch_driver import BatchDriver
from lab.fuzz.eager import eager
from lab.fuzz.generate import generate
from lab.fuzz.main import case_seed
from lab.fuzz.run import bound as bound_case
from lab.fuzz.run import expected_of
from tests.support.jobs import TIME, Row, batch_of, bound
from tests.support.properties import examples
from tests.support.slot_steps import Step, run, steps_of, with_tables

W, S = "[RANGE 6 MICROSECONDS]", "[RANGE 8 MICROSECONDS SLIDE 4 MICROSECONDS]"
QUERIES = {
    "hash": f"SELECT a.x, b.x AS y FROM a {W}, b {W} WHERE a.k = b.k",
    "several keys": f"SELECT a.x, b.s FROM a {W}, b {W} WHERE a.k = b.k AND a.s = b.s",
    "three": f"SELECT a.x, b.x AS y, c.w FROM a {W}, b {W}, c {W} WHERE a.k = b.k AND b.s = c.s AND a.x <= c.x",
    "range": f"SELECT a.x, b.x AS y, a.m FROM a {W}, b {W} WHERE a.x < b.x - 2",
    "bytes": f"SELECT a.s, b.m FROM a {W}, b {W} WHERE a.s = b.s",
    "decimals": f"SELECT a.d, b.x FROM a {W}, b {W} WHERE a.d = b.d",
    "dictionaries": f"SELECT a.w, b.w AS v, a.x FROM a {W}, b {W} WHERE a.w = b.w",
    "nested": f"SELECT a.l, b.m, b.x FROM a {W}, b {W} WHERE a.k = b.k",
    "table": f"SELECT a.x, t.x AS y, b.w FROM a {W}, t, b {W} WHERE a.k = t.k AND b.s = t.s",
    "self": f"SELECT p.x, q.l FROM a {W} AS p, a {W} AS q WHERE p.k = q.k",
    "slide": f"SELECT a.s, COUNT(*) AS n, SUM(b.x) AS sum, window_end() AS e FROM a {S}, b {S} WHERE a.k = b.k "
    "GROUP BY a.s",
    "slide of keys": f"SELECT a.k, COUNT(DISTINCT b.x) AS n, MAX(b.s) AS m, AVG(a.x) AS v, window_end() AS e "
    f"FROM a {S}, b {S} WHERE a.k = b.k GROUP BY a.k",
    "no group": f"SELECT COUNT(*) AS n, window_end() AS e FROM a {S}, b {S} WHERE a.k = b.k",
    "total": f"SELECT a.k, COUNT(*) AS n FROM a {W}, b {W} WHERE a.k = b.k GROUP BY a.k",
    "rows": f"SELECT a.x, b.w FROM a [ROWS 5], b {W} WHERE a.k = b.k",
    "slide of rows": f"SELECT b.w, COUNT(*) AS n, MAX(a.x) AS m, window_end() AS e FROM a [ROWS 4], b {S} "
    "WHERE a.k = b.k GROUP BY b.w",
}
WORDS, NESTED = pa.dictionary(pa.int32(), pa.string()), pa.struct([("f", pa.float64()), ("b", pa.bool_())])
COLUMNS = pa.schema(
    {
        "ts": TIME,
        "k": pa.int64(),
        "x": pa.int64(),
        "s": pa.string(),
        "w": WORDS,
        "d": pa.decimal128(38, 2),
        "l": pa.list_(pa.string()),
        "m": NESTED,
    }
)
TABLE = pa.schema([("k", pa.int64()), ("x", pa.int64()), ("s", pa.string())])
TABLE_ROWS = [(1, 1, "a"), (2, 5, "b"), (1, 7, None)]
LATENESS = 8


def streams(name: str) -> list[str]:
    return [n for n in "abc" if f" {n} [" in QUERIES[name]]


def columns(name: str) -> dict[str, pa.Schema]:
    return dict.fromkeys(streams(name), COLUMNS) | ({"t": TABLE} if " t," in QUERIES[name] else {})


@cache
def query(name: str) -> BoundQuery:
    return bound(QUERIES[name], dict.fromkeys(streams(name), LATENESS), ["t"], **columns(name))


def some_rows(rng: random.Random, start: int, most: int = 12) -> list[Row]:
    """NULLs in columns that are not keys occur only in later rows."""
    late = start > 20
    return [
        (
            start + rng.randrange(8),
            rng.choice([0, 1, 2, None]),
            rng.randrange(5) if not late or rng.random() < 0.8 else None,
            rng.choice(["a", "b", "a longer one", None]),
            rng.choice(["p", "q", f"new {rng.randrange(99)}"] + [None] * late),
            rng.choice([Decimal("1.25"), Decimal(10) ** 30, None]),
            rng.choice([[], ["u"], ["v", None, "w" * 9]] + [None] * late),
            rng.choice([{"f": 0.5, "b": True}, {"f": None, "b": False}] + [None] * late),
        )
        for _ in range(rng.randrange(most))
    ]


def planned(name: str, seed: int, most: int = 12) -> tuple[list[Step], list[Row]]:
    """The batches of a run, and all rows that it must produce."""
    rng, tables = random.Random(f"{name} {seed}"), {"t": TABLE_ROWS} if "t" in columns(name) else {}
    some = partial(some_rows, rng, most=most)
    return steps_of(QUERIES[name], columns(name), LATENESS, tables, range(0, 56, 8), some)


def opened(folder: str, name: str, tuning: Tuning = DEFAULT, **options: object) -> Slot:
    """Open a slot, and load its tables if it is new."""
    slot = open_slot(query(name), Settings(**{"check": True} | options), folder, tuning=tuning)
    return with_tables(slot, {"t": batch_of(TABLE, TABLE_ROWS)} if "t" in columns(name) else {})


def visit(folder: str, name: str, size: int | None, committed: int, before: str, step: Step) -> list[Row]:
    """The work of one task: attach, commit or wind back the batch of the last task, run a batch, save."""
    slot = opened(folder, name, eager(size))
    assert slot.version == committed, "the state was lost"
    if before == "commit":
        slot.commit(committed + 1)
    elif before == "wind back":
        slot.wind_back()
    rows = run(slot, step)
    assert save(slot)
    close(slot)
    return rows


@pytest.fixture(scope="module")
def other_process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("sizes", [(None,), (4,), (None, 4)], ids=["plain", "eager", "either"])
@pytest.mark.parametrize("name", QUERIES)
def test_a_slot_goes_from_process_to_process(
    name: str, sizes: tuple[int | None, ...], other_process: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """Each batch runs in this process or in another, and is saved before it is committed; then it is committed, or run
    again. A process does not need the tuning of the previous one."""
    steps, expected = planned(name, 1, most=40 if sizes == (None,) else 12)
    rng, folder, found = random.Random(name), str(tmp_path / "slot"), []
    before, committed = "", 0
    for step in steps:
        tried: list[list[Row]] = []
        while not tried or before == "wind back":
            task = (folder, name, rng.choice(sizes), committed, before, step)
            there = rng.random() < 0.6
            tried.append(other_process.submit(visit, *task).result() if there else visit(*task))
            committed += before == "commit"
            before = rng.choice(["commit", "commit", "wind back"])
        assert all(rows == tried[0] for rows in tried)
        found += tried[0]
    assert sorted(found, key=repr) == expected and expected


def hold(folder: str) -> int:
    """Keep a slot open; returns the process number."""
    held.append(opened(folder, "hash"))
    return os.getpid()


def let_go() -> None:
    close(held.pop())


held: list[Slot] = []


def test_a_slot_has_one_owner(other_process: ProcessPoolExecutor, tmp_path: Path) -> None:
    folder = str(tmp_path)
    other_process.submit(hold, folder).result()
    with pytest.raises(JobError, match="in use by another process"):
        opened(folder, "hash")
    other_process.submit(let_go).result()
    close(opened(folder, "hash"))


def die(folder: str, step: Step) -> None:
    """Run a batch, and die in the middle of the next."""
    run(opened(folder, "hash"), step)
    os._exit(3)


def saved_slot(folder: str, name: str, steps: list[Step]) -> list[Row]:
    """Run and commit some steps of a slot in a folder, and save it; returns its rows."""
    slot, found = opened(folder, name), []
    for step in steps:
        found += run(slot, step)
        slot.commit(slot.version + 1)
    assert save(slot)
    close(slot)
    return found


def check_lost(folder: str, name: str, **options: object) -> None:
    """Check that a new slot opens, without state of the old one, and works."""
    slot = opened(folder, name)
    steps, expected = planned(name, 2)
    assert slot.version == 0 and slot.state_rows == (3 if " t," in QUERIES[name] else 0)
    assert sorted([row for step in steps for row in run(slot, step)], key=repr) == expected
    close(slot)


def test_a_process_that_is_killed_leaves_nothing_to_attach_to(tmp_path: Path) -> None:
    folder, (steps, _) = str(tmp_path), planned("hash", 1)
    saved_slot(folder, "hash", steps[:3])
    killed = multiprocessing.get_context("spawn").Process(target=die, args=(folder, steps[3]))
    killed.start()
    killed.join()
    assert killed.exitcode == 3
    check_lost(folder, "hash")


@pytest.mark.parametrize("when", ["opened", "run", "committed", "saving", "saved"])
def test_a_slot_that_is_left_at_any_point(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, (steps, _) = str(tmp_path), planned("slide of rows", 1)
    saved_slot(folder, "slide of rows", steps[:3])
    assert (tmp_path / "header").exists()
    slot = opened(folder, "slide of rows")
    assert slot.version == 3 and not (tmp_path / "header").exists()
    if when != "opened":
        run(slot, steps[3])
    if when == "committed":
        slot.commit(4)
    elif when == "saving":
        monkeypatch.setattr(os, "replace", no_space)
        assert not save(slot)
    elif when == "saved":
        assert save(slot)
    close(slot)
    if when == "saved":
        assert opened(folder, "slide of rows").version == 3
    else:
        check_lost(folder, "slide of rows")


def no_space(*_: object) -> None:
    raise OSError(28, "No space left on device")


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def edited(key: str, value: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        header = unpacked(unsealed((folder / "header").read_bytes()), attach.Header)
        changed = msgspec.structs.replace(header, **{key: value})
        (folder / "header").write_bytes(sealed(packed(changed)))

    return edit


WRONG: dict[str, Callable[[Path], None]] = {
    "no header": lambda folder: (folder / "header").unlink(),
    "half a header": lambda folder: truncated(folder / "header"),
    "no JSON": lambda folder: (folder / "header").write_bytes(b"\xff\x00"),
    "another thing": lambda folder: (folder / "header").write_text("[1, 2]"),
    "not its checksum": lambda folder: (folder / "header").write_text("00000000\n{}"),
    "another format": edited("format", "7-of another version"),
    "another boot": edited("boot", "the one before"),
    "other regions": edited("regions", 3),
    "another state": edited("slot", [1, 2, 3]),
    "no state": edited("slot", None),
    "a file less": lambda folder: (folder / "0").unlink(),
    "half a file": lambda folder: truncated(folder / "0"),
    "no cells": lambda folder: min(folder.glob("*.arrow")).unlink(),
    "cells of nothing": lambda folder: min(folder.glob("*.arrow")).write_bytes(
        bytes(min(folder.glob("*.arrow")).stat().st_size)
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_doubtful_counts_as_lost(what: str, tmp_path: Path) -> None:
    steps, _ = planned("slide", 1)
    saved_slot(str(tmp_path), "slide", steps[:4])
    WRONG[what](tmp_path)
    check_lost(str(tmp_path), "slide")


def test_a_flipped_bit_of_what_is_beside_the_columns_is_noticed(tmp_path: Path) -> None:
    """Wherever the bit is. (Columns are memory, and have no checksums.)"""
    steps, _ = planned("slide", 1)
    saved_slot(str(tmp_path), "slide", steps[:4])
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    rng, flipped = random.Random(1), 0
    for name, data in whole.items():
        if name != "header" and not name.endswith(".arrow"):
            continue
        for at in (0, len(data) - 1, *(rng.randrange(len(data)) for _ in range(20))):
            for path in tmp_path.iterdir():
                path.unlink()
            for other, there in whole.items():
                (tmp_path / other).write_bytes(there)
            changed = bytearray(data)
            changed[at] ^= 1 << rng.randrange(8)
            (tmp_path / name).write_bytes(changed)
            slot = opened(str(tmp_path), "slide")
            assert slot.version == 0, f"bit flipped in byte {at} of {name}"
            close(slot)
            flipped += 1
    assert flipped > 40


def test_the_state_of_another_query_or_job_counts_as_lost(tmp_path: Path) -> None:
    steps, _ = planned("slide", 1)
    saved_slot(str(tmp_path), "slide", steps[:4])
    check_lost(str(tmp_path), "total")
    assert len({fingerprint(query(name)) for name in QUERIES}) == len(QUERIES)
    for identity, version in [("slot 1 of 2", 0), ("slot 1 of 2", 1), ("slot 1 of 3", 0)]:
        slot = open_slot(query("slide"), Settings(), str(tmp_path), identity=identity)
        assert slot.version == version
        slot.commit(1)
        assert save(slot)
        close(slot)


def test_other_settings_attach_to_the_same_state(tmp_path: Path) -> None:
    steps, expected = planned("three", 3)
    found = []
    changes = [{"router": "random"}, {"packet": 1}, {}, {"router": "lottery", "input_batch": 3}, {"router": "auto"}]
    for i, step in enumerate(steps):
        slot = opened(str(tmp_path), "three", **changes[i % len(changes)])
        assert slot.version == i
        found += run(slot, step)
        slot.commit(i + 1)
        assert save(slot)
        close(slot)
    assert sorted(found, key=repr) == expected


def test_nothing_is_saved_before_it_is_drained_or_without_a_folder(tmp_path: Path) -> None:
    steps, _ = planned("hash", 1)
    slot = opened(str(tmp_path), "hash")
    slot.feed("a", steps[0].rows["a"])
    slot.feed("b", steps[0].rows["b"])
    slot.advance(steps[0].by_stream, steps[0].watermark)
    with pytest.raises(InternalError, match="drained"):
        save(slot)
    close(slot)
    with pytest.raises(InternalError, match="folder"):
        save(Slot(query("hash"), Settings()))


def touched(folder: Path) -> int:
    """The bytes of the files of a folder that this process has touched through a mapping."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            inside = str(folder) in rest
        elif inside and first == "Rss:":
            total += int(rest.split()[0]) * 1024
    return total


def large_batch(rng: np.random.Generator, rows: int) -> pa.RecordBatch:
    keys, texts = rng.integers(0, rows, rows), pa.array(rng.integers(0, 999, rows)).cast(pa.string())
    arrays = [pa.array(rng.integers(0, 1000, rows), TIME), pa.array(keys), pa.array(keys % 7), texts]
    arrays += [texts.dictionary_encode(), pa.nulls(rows, pa.decimal128(38, 2))]
    arrays += [pa.ListArray.from_arrays(pa.array(np.arange(rows + 1), pa.int32()), texts)]
    return pa.RecordBatch.from_arrays([*arrays, pa.nulls(rows, NESTED)], schema=COLUMNS)


def test_attaching_reads_nothing_of_the_columns(tmp_path: Path) -> None:
    """The same few pages are touched, however many rows there are."""
    window = "[RANGE 1 HOUR]"
    select = f"SELECT a.l, b.w, b.s FROM a {window}, b {window} WHERE a.k = b.k AND a.x < b.x - 7"
    wide = bound(select, a=COLUMNS, b=COLUMNS)
    found = []
    for rows in (1000, 100_000):
        folder, rng = tmp_path / str(rows), np.random.default_rng(rows)
        slot = open_slot(wide, Settings(), str(folder))
        for name in "ab":
            slot.feed(name, large_batch(rng, rows))
        slot.advance(dict.fromkeys("ab", 0), 0)
        slot.drain()
        slot.commit(1)
        assert slot.arena.bytes > 100 * rows
        assert save(slot)
        assert touched(folder) > 50 * rows
        close(slot)
        assert touched(folder) == 0, "a closed slot keeps its mappings"
        slot = open_slot(wide, Settings(), str(folder))
        assert slot.version == 1 and slot.state_rows == 2 * rows
        found.append(touched(folder))
        close(slot)
    assert found[0] == found[1] < 200_000


def test_only_what_changed_is_written_again(tmp_path: Path) -> None:
    """Cells that did not change keep their file; files that are not needed are deleted."""
    steps, _ = planned("slide", 1)
    saved_slot(str(tmp_path), "slide", steps[:4])
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.arrow")}
    saved_slot(str(tmp_path), "slide", [])
    assert before == {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.arrow")} and before
    saved_slot(str(tmp_path), "slide", steps[4:])
    assert not before.keys() & {path.name for path in tmp_path.glob("*.arrow")}
    assert not list(tmp_path.glob("*.new"))


def test_what_the_router_learned_is_handed_on(tmp_path: Path) -> None:
    steps, _ = planned("three", 1, most=60)
    slot = opened(str(tmp_path), "three", eager(4))
    for step in steps[:5]:
        run(slot, step)
        slot.commit(slot.version + 1)
    assert save(slot)
    close(slot)
    again = opened(str(tmp_path), "three")
    old, new = slot.executor.eddy, again.executor.eddy
    assert new.work.moment == old.work.moment > 100
    assert new.routes.saved() == old.routes.saved()
    for signature, entry in old.routes.entries.items():
        chosen = new.routes.entries[signature].chosen
        assert (chosen and chosen.step) == (entry.chosen and entry.chosen.step)
    ours, theirs = new._router.saved(), old._router.saved()
    assert ours is not None and theirs is not None and ours.notes == theirs.notes and ours.notes
    assert [f.signature for f in ours.forks] == [f.signature for f in theirs.forks]
    assert [f.profile for f in ours.forks] == [f.profile for f in theirs.forks]
    assert [(f.surprised, f.news) for f in ours.forks] == [(f.surprised, f.news) for f in theirs.forks]
    assert new.work.levels.keys() == old.work.levels.keys()


# The small state


def of_slot(rows: pa.RecordBatch, number: int, slots: int) -> pa.RecordBatch:
    keys = np.array([key or 0 for key in rows["k"].to_pylist()], np.int64)
    return rows.filter(pa.array(keys % slots == number))


@pytest.mark.parametrize("slots", [1, 3])
@pytest.mark.parametrize("name", ["slide of keys", "total"])
def test_the_small_state_of_some_slots_and_the_rows_are_the_whole_state(name: str, slots: int) -> None:
    """Rows go to slots by key; half way a new slot takes over with all rows and the cells of all other slots."""
    steps, expected = planned(name, 5)
    parts = [Slot(query(name), Settings()) for _ in range(slots)]
    found = []
    for step in steps[:4]:
        for number, slot in enumerate(parts):
            mine = {n: of_slot(rows, number, slots) for n, rows in step.rows.items()}
            found += run(slot, replace(step, rows=mine))
    small = [slot.durable() for slot in parts]
    assert all(named(state, "boundary") == named(small[0], "boundary") for state in small)
    one = Slot(query(name), Settings())
    for step in steps[:4]:  # as if read from a log: only the rows, not their results
        for stream, rows in step.rows.items():
            one.feed(stream, rows)
    one.advance(dict.fromkeys(steps[0].by_stream), None)
    one.drain()
    one.restore_durable([one_of for state in small for one_of in state], small[0])
    one.commit(4)
    for step in steps[4:]:
        run(one, step)
        one.wind_back()
        found += run(one, step)
        one.commit(one.version + 1)
    assert sorted(found, key=repr) == expected


def test_the_small_state_of_rows_windows() -> None:
    """Another slot continues with the waiting tuples and the counts of ROWS windows; all its rows were processed
    before."""
    name = "slide of rows"
    steps, expected = planned(name, 5)
    old, new = Slot(query(name), Settings()), Slot(query(name), Settings())
    found = []
    for step in steps[:4]:
        found += run(old, step)
        run(new, step)
    state, empty = old.durable(), Slot(query(name), Settings()).durable()
    assert old.executor.rows_windows[0].rows > 4
    (waiting,) = named(state, "waiting")
    assert waiting.num_rows == old.results.state_rows > 0 and not named(state, "panes")
    new.restore_durable(empty, empty)
    assert new.results.state_rows == 0 and new.executor.rows_windows[0].rows == 0
    new.restore_durable(state, state)
    assert new.executor.rows_windows[0].rows == old.executor.rows_windows[0].rows
    new.commit(4)
    for step in steps[4:]:
        found += run(new, step)
    assert sorted(found, key=repr) == expected


def test_a_query_without_aggregates_has_no_small_state() -> None:
    slot = Slot(query("hash"), Settings())
    for step in planned("hash", 1)[0][:3]:
        run(slot, step)
    assert slot.durable() == []


# Random queries


class Travelling(BatchDriver):
    """Saves its slots and opens them again after each batch, commit and wind-back."""

    def __init__(self, query: BoundQuery, settings: Settings, folder: Path, tuning: Tuning) -> None:
        super().__init__(query, settings, tuning=tuning)
        self._folder, self._settings, self._tuning = folder, settings, tuning
        self._keeper.slots = {number: self._opened(number) for number in range(self.home.slots)}

    def _opened(self, number: int) -> Slot:
        folder = str(self._folder / str(number))
        return open_slot(self.query, self._settings, folder, partial=self.home.partial, tuning=self._tuning)

    def travel(self) -> None:
        for number, slot in enumerate(self.slots):
            before = known(slot)
            assert save(slot)
            close(slot)
            self._keeper.slots[number] = self._opened(number)
            assert known(self.slots[number]) == before


def known(slot: Slot) -> list[object]:
    """The comparable part of a slot's state."""
    executor, errors = slot.executor, slot.errors
    committed = executor.eddy.saved().committed_number, slot._progress.saved()
    now = slot.version, executor.eddy.number, slot.watermark, errors.count, errors.first, slot.state_rows
    return [
        now,
        committed,
        [stem.nbytes for stem in executor.stems],
        [c.state_bytes for c in executor.rows_windows.values()],
    ]


def travelled(seed: int, folder: Path) -> str | None:
    """The difference in results between a case of the fuzzer that moves between processes and one that does not; None
    if there is none."""
    case = generate(seed)
    options = dict(case.settings)
    for name in ("durable", "migrate"):
        options.pop(name, None)
    tuning = eager(options.pop("eager", None))
    engine = Travelling(bound_case(case), Settings(**options), folder, tuning)
    for name, table in case.tables.items():
        engine.load_table(name, table)
    results = []
    for batch in case.batches:
        engine.travel()
        if batch.undone is not None:
            engine.batch(batch.undone, commit=False)
            engine.travel()
            engine.wind_back()
            engine.travel()
        results += engine.batch(batch.rows, batch.ended, commit=False).results
        engine.travel()
        engine.commit()
    engine.travel()
    results += engine.end().results
    for slot in engine.slots:
        close(slot)
    expected = expected_of(case, Oracle())
    return difference(pa.Table.from_batches(results, engine.query.schema), expected.table, expected.scale)


@pytest.mark.long
@given(st.integers(0, 10**9))
@examples(15)
def test_random_queries_travel(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    assert travelled(case_seed(seed, 0), tmp_path_factory.mktemp("slots")) is None
