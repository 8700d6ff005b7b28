"""Every fault point, every kind of fault, on small jobs: the rows are those of the oracle, and nothing is left."""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eddyline import faults
from eddyline.errors import InternalError, JobError
from eddyline.protocol.adapted import stays
from eddyline.protocol.outlet import RESULTS, Outlet
from eddyline.runtime.sinks.batches import BatchFiles, HandOver
from eddyline.runtime.sinks.files import FileOptions
from eddyline.settings import Settings
from eddyline.state.log.labelled import LabelledFiles
from eddyline.state.log.store import Store
from eddyline.testing.case import Batch, Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.oracle import Expected, Oracle
from lab.fuzz import fault_points as module
from lab.fuzz.fault_points import fault_points
from lab.fuzz.outcome import CaseOutcome
from lab.fuzz.random_moves import random_moves
from lab.fuzz.random_places import RandomPlaces
from lab.fuzz.random_plans import random_plans
from lab.fuzz.run import bound, expected_of, wrong
from lab.fuzz.simulated_lookups import simulated_lookups
from lab.fuzz.simulation import Crash, Simulation, leftovers
from tests.support.asked import asked

ELSEWHERE = ("spark: ", "table: ", "kafka: ")
"""The first words of points that other tests strike (tests/spark/test_spark_faults.py,
tests/runtime/sinks/test_table_sink.py)."""
POINTS = {name: place for name, place in fault_points().items() if not name.startswith(ELSEWHERE)}
"""Those of spark/ are for the tests that run Spark."""
JOB = "0123456789ab"
GROUPS = 2
"""The partition groups of the job that spills."""
ONLY_TWICE = "sink: what was published before is away"
"""Reached when a batch is published twice in one life, which no job does."""

# Small jobs

_CHAIN = "a.k = b.k", "b.k = c.k"
_SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.string())])


def rows(*values: tuple[int, int, str]) -> pa.RecordBatch:
    columns = list(zip(*values, strict=True))
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)], schema=_SCHEMA)


def case(windows: tuple[str, str], outputs: tuple[str, ...], keys: tuple[str, ...], slots: int) -> Case:
    """Four batches; in the third a row of `a` is late."""
    rng, batches = Random(slots), []
    for start in (0, 30, 60, 90):
        a = [(start + rng.randrange(30), rng.randrange(3), "x") for _ in range(12)] + [(start + 29, 1, "y")]
        b = [(start + rng.randrange(30), rng.randrange(3), "z") for _ in range(9)] + [(start + 29, 2, "z")]
        a += [(1, 1, "late")] if start == 60 else []
        batches.append(Batch((("a", rows(*a)), ("b", rows(*b)))))
    select = SelectParts(
        outputs, (FromPart("a", "a", windows[0]), FromPart("b", "b", windows[1])), ("a.k = b.k",), keys
    )
    streams = (StreamDecl("a", _SCHEMA, "ts"), StreamDecl("b", _SCHEMA, "ts"))
    return Case(streams, select, tuple(batches), {}, {"slots": slots})


JOBS = {
    "join": case(("RANGE 20 MICROSECONDS", "RANGE 20 MICROSECONDS"), ("a.ts", "b.ts AS t", "a.v", "b.k"), (), 1),
    "aggregate": case(
        ("RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS", "ROWS 5 SLIDE 10 MICROSECONDS"),
        ("window_end() AS w", "a.v", "COUNT(*) AS n", "MAX(b.ts) AS m"),
        ("a.v",),
        2,
    ),
}
_JOIN = JOBS["join"].select
_THREE = replace(_JOIN, sources=(*_JOIN.sources, FromPart("b", "c", "RANGE 20 MICROSECONDS")), where=_CHAIN)
MIGRATIONS = {"migration": 8, "migrations": 1}
"""Jobs whose plan changes, with a seed for when and how (lab/fuzz/random_plans.py)."""
JOBS |= {job: replace(JOBS["join"], select=_THREE) for job in MIGRATIONS}
SPILLS, PLACES = {"spill": 1}, 8
"""Jobs whose partition groups leave memory, are swept and move between slots, with a seed for when
(lab/fuzz/random_moves.py, random_places.py)."""
_SLIDE = "RANGE 20 MICROSECONDS SLIDE 10 MICROSECONDS"
_SLIDING = case((_SLIDE, _SLIDE), ("window_end() AS w", "a.v", "COUNT(*) AS n", "MAX(b.ts) AS m"), ("a.v",), 2)
_MOVING = {"slots": 2, "memory": 1 << 40, "groups": GROUPS, "balance": "moving-state"}
JOBS |= {job: replace(_SLIDING, settings=_MOVING) for job in SPILLS}
ASKED = {"asked": 5}
"""Jobs whose tables are asked, with a seed for when answers come (lab/fuzz/simulated_lookups.py)."""
_TABLE = pa.schema([("k", pa.int64()), ("x", pa.string())])
_ASKS = replace(_JOIN, outputs=(*_JOIN.outputs, "t.x"), sources=(*_JOIN.sources, FromPart("t", "t")),
                where=("a.k = b.k", "b.k = t.k"))  # fmt: skip
_ANSWERS = pa.record_batch([[1, 2, 2], ["one", "two", "too"]], schema=_TABLE)
JOBS |= {
    job: replace(
        JOBS["join"],
        streams=(*JOBS["join"].streams, StreamDecl("t", _TABLE)),
        select=_ASKS,
        tables={"t": _ANSWERS},
        settings={"slots": 2, "batch_seconds": 1e-6},
    )
    for job in ASKED
}


class FileSink:
    """A sink that writes results to files and gives late rows to a function that keeps them by batch."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.kept = folder / "out", dict[int, list[pa.RecordBatch]]()
        self.results = BatchFiles(FileOptions(self.folder, "parquet", "error", 50), schema, JOB)
        self.store = Store(str(folder / "handed"))
        files = LabelledFiles(self.store)
        files.describe({"id": JOB})
        self.late = HandOver(files, "late", _SCHEMA, self._keep)

    def _keep(self, batch: int, files: Sequence[str]) -> None:
        self.kept[batch] = [r for file in files for r in pq.read_table(self.store.path(file)).to_batches()]

    def stage(self, outlet: Outlet, name: str, batches: Sequence[pa.RecordBatch]) -> list[str]:
        return self.results.stage(name, batches) if outlet == RESULTS else self.late.stage(name, batches)

    def publish(self, batch: int, staged: Mapping[Outlet, Sequence[str]]) -> None:
        self.results.publish(batch, staged.get(RESULTS, ()))
        self.late.publish(batch, [file for outlet, files in staged.items() if outlet != RESULTS for file in files])

    def forget_after(self, batch: int) -> None:
        self.results.forget_after(batch)
        self.late.forget_after(batch)

    def rows(self, outlet: Outlet, after: int = -1) -> list[pa.RecordBatch]:
        if outlet == Outlet("late", "a"):
            return [rows for _, some in sorted(self.kept.items()) for rows in some]
        files = (
            [f for f in sorted(self.folder.glob("part-*")) if int(f.name[5:13]) > after] if outlet == RESULTS else []
        )
        return [r for file in files for r in pq.read_table(file).to_batches()]

    def close(self) -> None:
        self.results.close(99)
        self.late.close(99)


@cache
def expected(job: str) -> Expected:
    return expected_of(JOBS[job], Oracle())


class Run:
    """A job that is started again whenever it dies; `strike` decides when it dies. In its third batch the driver dies,
    and the arenas are lost."""

    def __init__(self, job: str, folder: Path, strike: Callable[[str], None] = lambda point: None) -> None:
        self.job, self.folder, self.strike, self.deaths = job, folder, strike, list[BaseException]()
        query, lookups = bound(JOBS[job]), None
        if job in ASKED:
            query = asked(query, {"t": [("k",)]})
            lookups = simulated_lookups(query, JOBS[job].tables, ASKED[job])
        self.sink = FileSink(folder, query.schema)
        settings = Settings(**JOBS[job].settings)  # type: ignore[arg-type]
        self.simulation = Simulation(
            JOBS[job],
            query,
            settings,
            str(folder),
            1,
            sink=self.sink,
            strike=self._strike,
            plans=random_plans(MIGRATIONS.get(job)),
            mover=random_moves(SPILLS.get(job), GROUPS),
            placer=RandomPlaces(PLACES) if job in SPILLS else stays,
            lookups=lookups,
        )
        self.reached = self.simulation.reached

    def _strike(self, point: str) -> None:
        if point == "after publish" and self.reached[point] == 3:
            self.lose_arenas()
            raise Crash(point)
        self.strike(point)

    def lose_arenas(self) -> None:
        shutil.rmtree(self.folder / "host-a")

    def to_the_end(self) -> CaseOutcome:
        while True:
            try:
                return self.simulation.live()
            except (Crash, JobError, OSError) as death:
                self.deaths.append(death)
                assert len(self.deaths) < 5, f"it does not come to an end: {self.deaths}"

    def is_right(self) -> None:
        assert wrong(self.to_the_end(), expected(self.job)) is None
        assert leftovers(self.simulation.checkpoint) == []
        self.sink.close()
        assert not list(self.folder.rglob("_staged")) and not (self.folder / "handed" / "late").exists()


@cache
def visits(job: str, folder: Path) -> Counter[str]:
    """How often each point is reached when nothing else goes wrong."""
    run = Run(job, folder / job)
    run.is_right()
    return run.reached


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Counter[str]]:
    folder = tmp_path_factory.mktemp("baseline")
    return lambda job: visits(job, folder)


def dies(point: str) -> BaseException:
    return Crash(point)


def disk_full(point: str) -> BaseException:
    return OSError(errno.ENOSPC, "No space left on device")


FIRST, LATER = 0.0, 0.6
"""The visit of a point at which a fault happens, as a share of all its visits."""


@pytest.mark.parametrize(
    ("fault", "when"),
    [
        (
            dies,
            {
                "join": FIRST,
                "aggregate": LATER,
                "migration": FIRST,
                "migrations": LATER,
                "spill": FIRST,
                "asked": LATER,
            },
        ),
        (
            disk_full,
            {
                "join": LATER,
                "aggregate": FIRST,
                "migration": LATER,
                "migrations": FIRST,
                "spill": LATER,
                "asked": FIRST,
            },
        ),
    ],
)
@pytest.mark.parametrize("point", sorted(POINTS))
@pytest.mark.share(3)
def test_a_fault_at_a_point(
    point: str,
    fault: Callable[[str], BaseException],
    when: Mapping[str, float],
    tmp_path: Path,
    baseline: Callable[[str], Counter[str]],
) -> None:
    if point == ONLY_TWICE:
        return  # see below
    struck = []
    for job in JOBS:
        if baseline(job)[point]:
            run, visit = Run(job, tmp_path / job), 1 + int(baseline(job)[point] * when[job])

            def strike(name: str, run: Run = run, visit: int = visit) -> None:
                if name == point and run.reached[name] == visit:
                    struck.append(name)
                    raise fault(name)

            run.strike = strike
            run.is_right()
    assert struck, f"no job comes to '{point}' ({POINTS[point]})"


def test_a_batch_that_is_published_twice(tmp_path: Path) -> None:
    sink = FileSink(tmp_path, _SCHEMA)
    one, two = rows((1, 1, "one")), rows((2, 2, "two"))
    sink.publish(7, {RESULTS: sink.stage(RESULTS, "00000007-0-a", [one])})
    seen = []

    def strike(point: str) -> None:
        seen.append(point)
        if point == ONLY_TWICE:
            raise Crash(point)

    faults.inject(strike)
    try:
        with pytest.raises(Crash):
            sink.publish(7, {RESULTS: sink.stage(RESULTS, "00000007-0-b", [two])})
    finally:
        faults.inject(None)
    assert ONLY_TWICE in seen and sink.rows(RESULTS) == []
    sink.forget_after(6)
    for attempt in "cd":
        sink.publish(7, {RESULTS: sink.stage(RESULTS, f"00000007-0-{attempt}", [two])})
        assert pa.Table.from_batches(sink.rows(RESULTS)).to_pylist() == two.to_pylist()
    sink.close()
    assert [file.name for file in sink.folder.iterdir()] == [f"part-00000007-00000-{JOB}.parquet"]


# Storage


def files(folder: Path) -> dict[tuple[str, int], Path]:
    return {(str(file), file.stat().st_ino): file for file in folder.rglob("*") if file.is_file()}


def kind_of(file: Path) -> str:
    return file.name if file.name == "checkpoint.json" else file.parent.name


KINDS = ("checkpoint.json", "decided", "commits", "log", "small")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["before a file is renamed", "a file is there"])
def test_a_torn_write(where: str, kind: str, tmp_path: Path) -> None:
    """Half of a file is written, under the name of an unfinished file or, on a broken file system, under its own name;
    then everything dies. In the second case the job may refuse a file that counts; any other outcome is an error."""
    run = Run("aggregate", tmp_path)
    before: dict[tuple[str, int], Path] = {}
    torn = []

    def strike(point: str) -> None:
        if point == "store: before a file is written":
            before.clear()
            before.update(files(tmp_path / "checkpoint"))
        elif point == f"store: {where}" and len(torn) < 2:
            (new,) = [file for key, file in files(tmp_path / "checkpoint").items() if key not in before]
            if kind_of(Path(str(new).replace(new.name, new.name.split("-", 2)[-1]))) == kind or kind_of(new) == kind:
                torn.append(new)
                os.truncate(new, new.stat().st_size // 2)
                raise Crash(point)

    run.strike = strike
    counts = where == "a file is there" and kind in ("checkpoint.json", "commits")
    if not counts:
        run.is_right()
    else:
        with pytest.raises(Crash):
            run.simulation.live()
        with pytest.raises(JobError, match=rf"damaged: {kind}.* does not match its checksum"):
            run.simulation.live()
    assert torn


def stopped_in_the_middle(job: str, folder: Path) -> Run:
    """A job that died after a decision, with files of all kinds in its checkpoint, and whose arenas are lost."""
    run = Run(job, folder)

    def strike(point: str) -> None:
        if point == "after decide" and run.reached[point] == 5:
            raise Crash(point)

    run.strike = strike
    for _ in range(2):
        with pytest.raises(Crash):
            run.simulation.live()
    run.lose_arenas()
    return run


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit(kind: str, tmp_path: Path) -> None:
    """The job refuses the file and names it, or the bit does not matter; the result is never wrong."""
    refused, rng = 0, Random(kind)
    run = stopped_in_the_middle("aggregate", tmp_path / "run")
    found = [file for file in files(tmp_path / "run" / "checkpoint").values() if kind_of(file) == kind]
    assert found
    for file in found:
        whole = file.read_bytes()
        for at in (0, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(4))):
            changed = bytearray(whole)
            changed[at] ^= 1 << rng.randrange(8)
            file.write_bytes(changed)
            if kind == "decided":
                continue  # it is decided anew
            try:
                run.simulation.live()
            except JobError as error:
                assert "damaged" in str(error) and file.name in str(error)
                refused += 1
            else:  # only between the sections of a segment
                return run.is_right()
        if kind != "decided":
            file.write_bytes(whole)
    run.is_right()
    assert refused or kind == "decided"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    run = stopped_in_the_middle("join", tmp_path)
    segment = next((tmp_path / "checkpoint" / "log").iterdir())
    whole = segment.read_bytes()
    segment.unlink()
    with pytest.raises(JobError, match=f"damaged: log/{segment.name} is missing"):
        run.simulation.live()
    segment.write_bytes(whole)
    run.is_right()


@pytest.mark.parametrize("job", JOBS)
def test_late_files_of_a_zombie(job: str, tmp_path: Path) -> None:
    """After every commit a zombie writes files for an earlier batch, some of them unfinished."""
    run = Run(job, tmp_path)

    def zombie() -> Iterator[Path]:
        root, number = tmp_path / "checkpoint", run.reached["after commit"] - 1
        for folder in ("log", "small"):
            yield root / folder / f"{number:08}-0-zombie"
        for folder in ("log", "small", "commits", "decided"):
            yield root / folder / f".tmp-zombie-{number:08}"
        yield tmp_path / "out" / "_staged" / JOB / f"{number:08}-0-zombie-results.parquet"

    def strike(point: str) -> None:
        if point == "after commit" and run.reached[point] < 6:
            for file in zombie():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"whatever")

    run.strike = strike
    run.is_right()
    assert run.reached["after commit"] == 6 and len(run.deaths) == 1


# The enumeration


def test_points_are_found_by_reading_the_code(tmp_path: Path) -> None:
    assert len(POINTS) > 20
    (tmp_path / "one.py").write_text('reach("here")\n')
    assert fault_points(tmp_path) == {"here": "one.py:1"}
    (tmp_path / "two.py").write_text('\nreach("here")\n')
    with pytest.raises(InternalError, match=r"two.py:2: there is a fault point 'here' at one.py:1"):
        fault_points(tmp_path)
    (tmp_path / "two.py").write_text("reach(name)\n")
    with pytest.raises(InternalError, match="literal"):
        fault_points(tmp_path)


def test_examples_in_the_documentation() -> None:
    import doctest

    assert doctest.testmod(module).failed == 0
