"""Tables that are asked, in jobs with a checkpoint that die: the rows are right, answers are asked for once."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from eddyline.engine.lookups.logged_answers import keys_section
from eddyline.engine.lookups.look_up import AnswersKept
from eddyline.engine.tuning import DEFAULT
from eddyline.errors import SettingError
from eddyline.protocol.home import checkpoint_at
from eddyline.settings import Settings
from eddyline.testing.case import Batch, Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.oracle import Oracle
from lab.fuzz.outcome import CaseOutcome
from lab.fuzz.run import bound, expected_of, wrong
from lab.fuzz.simulated_lookups import SimulatedLookups
from lab.fuzz.simulation import Crash, Simulation
from tests.support.asked import Held, asked

_ROWS = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
_TABLE = pa.schema([("k", pa.int64()), ("x", pa.int64())])
_ANSWERS = pa.record_batch([[0, 1, 1, 2, 3], [0, 10, 11, 20, 30]], schema=_TABLE)
_WINDOW = "RANGE 20 MICROSECONDS"


def _rows(start: int, keys: range) -> pa.RecordBatch:
    return pa.record_batch([[start + key for key in keys], list(keys), list(keys)], schema=_ROWS)


def _case(again: bool, window: str, answers: pa.RecordBatch) -> Case:
    """Four batches, each long after the windows of the one before unless these have no end; batch n has the key n and,
    with `again`, those of the batches before."""
    select = SelectParts(
        ("a.v", "b.v AS w", "t.x"),
        (FromPart("a", "a", window), FromPart("b", "b", window), FromPart("t", "t")),
        ("a.v = b.v", "a.k = t.k"),
    )
    streams = (StreamDecl("a", _ROWS, "ts"), StreamDecl("b", _ROWS, "ts"), StreamDecl("t", _TABLE))
    batches = [[(s, _rows(1000 * n, range(0 if again else n, n + 1))) for s in "ab"] for n in range(4)]
    return Case(streams, select, tuple(Batch(tuple(rows)) for rows in batches), {"t": answers})


Fails = Callable[["Dying", tuple[object, ...]], bool]


class Dying:
    """A job that dies once, after a commit; its arenas are lost, so that its state is rebuilt from the log."""

    def __init__(
        self,
        folder: Path,
        dies_after: int,
        holds: bool = False,
        slots: int = 1,
        kept: AnswersKept | None = None,
        fails: Fails = lambda job, key: False,
        window: str = _WINDOW,
        merges: int = 8,
        held_after: int | None = None,
        answers: pa.RecordBatch = _ANSWERS,
    ) -> None:
        """With `holds` no answer comes before it dies, and no later row asks for the same keys. `kept` says how long
        answers are kept, and `fails` which lookups fail. `merges` segments of the log are merged into one.
        After `held_after` commits no answer comes until it dies."""
        self._held_after = held_after
        self._folder, self._dies_after, self._case, self.lives = (
            folder,
            dies_after,
            _case(not holds, window, answers),
            1,
        )
        query = asked(bound(self._case), {"t": [("k",)]})
        self.lookups: list[Held] = []

        def make() -> Held:
            given = query, self._case.tables, Random(1), 0.0, lambda table, key: fails(self, key)
            self.lookups.append(Held(SimulatedLookups(*given)))
            self.lookups[-1].holds = holds and self.lives == 1
            self.lookups[-1].kept = {} if kept is None else {"t": kept}
            return self.lookups[-1]

        settings = Settings(check=True, slots=slots, batch_seconds=1e-6)
        tuning = replace(DEFAULT, state=replace(DEFAULT.state, merged_files=merges))
        self._simulation = Simulation(
            self._case, query, settings, str(folder), 1, strike=self._strike, tuning=tuning, lookups=make
        )

    def _strike(self, point: str) -> None:
        if self.lives == 1 and self.commits == self._held_after:
            self.lookups[-1].holds = True
        if self.lives == 1 and point == "after commit" and self._simulation.reached[point] == self._dies_after:
            raise Crash(point)

    @property
    def commits(self) -> int:
        """How many batches are committed."""
        return self._simulation.reached["after commit"]

    def to_the_end(self, is_whole: bool = True, then: int | None = None) -> CaseOutcome:
        """It dies, and goes on with `then` slots."""
        with pytest.raises(Crash):
            self._simulation.live()
        shutil.rmtree(self._folder / "host-a")
        self.lives = 2
        self._simulation._settings = replace(self._simulation._settings, slots=then or self._simulation._settings.slots)
        outcome = self._simulation.live()
        assert not is_whole or wrong(outcome, expected_of(self._case, Oracle())) is None
        return outcome

    @property
    def keys(self) -> Counter[object]:
        """How often each key was asked for."""
        return Counter(key for lookups in self.lookups for _, (key,) in lookups.keys)


@pytest.mark.parametrize("dies_after", [1, 2, 3, 4, 5])
def test_answers_that_are_committed_are_not_asked_for_again(dies_after: int, tmp_path: Path) -> None:
    """That key 0 has no row is an answer, too: only its EOT tuple tells."""
    job = Dying(tmp_path, dies_after, answers=_ANSWERS.slice(1))
    job.to_the_end()
    assert job.keys == Counter(range(4))


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("window", [_WINDOW, "ROWS 1", "ROWS 2"])
def test_rows_that_wait_outlive_the_job_and_their_windows(window: str, slots: int, tmp_path: Path) -> None:
    job = Dying(tmp_path, 4, holds=True, slots=slots, window=window)
    assert job.to_the_end().table.num_rows
    last = 1 if "ROWS" in window else 2  # its row waited for the watermark
    assert job.keys == Counter({0: 2, 1: 2, 2: last, 3: 1}), "what was not answered is asked for again"


@pytest.mark.parametrize("window", [_WINDOW, "UNBOUNDED"])
@pytest.mark.parametrize("merges", [2, 8])
@pytest.mark.parametrize("dies_after", [1, 2, 3, 4, 5])
def test_answers_that_are_forgotten_are_asked_for_again(
    dies_after: int, merges: int, window: str, tmp_path: Path
) -> None:
    job = Dying(tmp_path, dies_after, kept=AnswersKept(seconds=0.0), merges=merges, window=window)
    assert job.to_the_end().table.num_rows
    assert job.keys == Counter({0: 4, 1: 3, 2: 2, 3: 1}), "each batch asks for all its keys"


@pytest.mark.parametrize("merges", [2, 8])
@pytest.mark.parametrize("dies_after", [1, 2, 3, 4, 5])
def test_answers_that_are_young_and_few_are_not_asked_for_again(dies_after: int, merges: int, tmp_path: Path) -> None:
    job = Dying(tmp_path, dies_after, kept=AnswersKept(1e9, 1000), merges=merges, window="UNBOUNDED")
    assert job.to_the_end().table.num_rows
    assert job.keys == Counter(range(4))


@pytest.mark.parametrize("merges", [2, 8])
@pytest.mark.parametrize("dies_after", [1, 2, 3, 4, 5])
def test_rows_that_are_dead_stay_dead(dies_after: int, merges: int, tmp_path: Path) -> None:
    """The lookup of key 1 fails in the first batch that has it."""
    job = Dying(
        tmp_path, dies_after, fails=lambda job, key: key == (1,) and job.commits < 3, window="UNBOUNDED", merges=merges
    )
    found = Counter(zip(*job.to_the_end(is_whole=False).table.to_pydict().values(), strict=True))
    assert found[1, 1, 10] == found[1, 1, 11] == 3 * 3 - 1, "all pairs but that of the two rows that came before"
    assert found[0, 0, 0] == 4 * 4 and found[2, 2, 20] == 2 * 2 and found[3, 3, 30] == 1


@pytest.mark.parametrize("merges", [2, 8])
@pytest.mark.parametrize("dies_after", [4, 5])
def test_rows_that_were_dead_stay_dead_while_their_key_is_asked_again(
    dies_after: int, merges: int, tmp_path: Path
) -> None:
    """As before, but the second lookup of key 1 is answered after the restart, when later rows wait for it."""

    def fails(job: Dying, key: tuple[object, ...]) -> bool:
        return key == (1,) and job.commits < 3

    job = Dying(tmp_path, dies_after, fails=fails, window="UNBOUNDED", merges=merges, held_after=3)
    found = Counter(zip(*job.to_the_end(is_whole=False).table.to_pydict().values(), strict=True))
    assert found[1, 1, 10] == found[1, 1, 11] == 3 * 3 - 1
    assert job.keys[1] == 3, "it failed, was asked again, and was asked for once more after the restart"


@pytest.mark.parametrize("holds", [False, True])
def test_the_number_of_slots_cannot_change(holds: bool, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="set slots=2"):
        Dying(tmp_path, 4, holds=holds, slots=2).to_the_end(then=3)


def test_forgotten_answers_leave_the_log(tmp_path: Path) -> None:
    job = Dying(tmp_path, 5, kept=AnswersKept(seconds=0.0), window="UNBOUNDED", merges=2)
    with pytest.raises(Crash):
        job._simulation.live()
    checkpoint = checkpoint_at(job._simulation.checkpoint)
    commit = checkpoint.last()
    assert commit is not None
    segments = [checkpoint.segment(file.name) for file in commit.log]
    logged = sum(batch.num_rows for segment in segments for batch in segment.batches(keys_section("t", 0)))
    assert job.keys.total() == 1 + 2 + 3 + 4 and 4 <= logged < 10
