"""Tables that are asked, in jobs with a checkpoint that die: the rows are right, answers are asked for once."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from eddyline.settings import Settings
from eddyline.testing.case import Batch, Case, FromPart, SelectParts, StreamDecl
from eddyline.testing.oracle import Oracle
from eddyline.testing.outcome import CaseOutcome
from eddyline.testing.run import bound, expected_of, wrong
from eddyline.testing.simulated_lookups import SimulatedLookups
from eddyline.testing.simulation import Crash, Simulation
from tests.support.asked import Held, asked

_ROWS = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64()), ("v", pa.int64())])
_TABLE = pa.schema([("k", pa.int64()), ("x", pa.int64())])
_ANSWERS = pa.record_batch([[0, 1, 1, 2, 3], [0, 10, 11, 20, 30]], schema=_TABLE)
_WINDOW = "RANGE 20 MICROSECONDS"


def _rows(start: int, keys: range) -> pa.RecordBatch:
    return pa.record_batch([[start + key for key in keys], list(keys), list(keys)], schema=_ROWS)


def _case(again: bool) -> Case:
    """Four batches, each long after the windows of the one before; batch n has the key n and, with `again`, those of
    the batches before."""
    select = SelectParts(
        ("a.v", "b.v AS w", "t.x"),
        (FromPart("a", "a", _WINDOW), FromPart("b", "b", _WINDOW), FromPart("t", "t")),
        ("a.v = b.v", "a.k = t.k"),
    )
    streams = (StreamDecl("a", _ROWS, "ts"), StreamDecl("b", _ROWS, "ts"), StreamDecl("t", _TABLE))
    batches = [[(s, _rows(1000 * n, range(0 if again else n, n + 1))) for s in "ab"] for n in range(4)]
    return Case(streams, select, tuple(Batch(tuple(rows)) for rows in batches), {"t": _ANSWERS})


class Dying:
    """A job that dies once, after a commit; its arenas are lost, so that its state is rebuilt from the log."""

    def __init__(self, folder: Path, dies_after: int, holds: bool = False, slots: int = 1) -> None:
        """With `holds` no answer comes before it dies, and no later row asks for the same keys."""
        self._folder, self._dies_after, self._case, self.lives = folder, dies_after, _case(not holds), 1
        query = asked(bound(self._case), {"t": [("k",)]})
        self.lookups: list[Held] = []

        def make() -> Held:
            self.lookups.append(Held(SimulatedLookups(query, self._case.tables, Random(1), 0.0)))
            self.lookups[-1].holds = holds and self.lives == 1
            return self.lookups[-1]

        settings = Settings(check=True, slots=slots, batch_seconds=1e-6)
        self._simulation = Simulation(self._case, query, settings, str(folder), 1, strike=self._strike, lookups=make)

    def _strike(self, point: str) -> None:
        if self.lives == 1 and point == "after commit" and self._simulation.reached[point] == self._dies_after:
            raise Crash(point)

    def to_the_end(self) -> CaseOutcome:
        with pytest.raises(Crash):
            self._simulation.live()
        shutil.rmtree(self._folder / "host-a")
        self.lives = 2
        outcome = self._simulation.live()
        assert wrong(outcome, expected_of(self._case, Oracle())) is None
        return outcome

    @property
    def keys(self) -> Counter[object]:
        """How often each key was asked for."""
        return Counter(key for lookups in self.lookups for _, (key,) in lookups.keys)


@pytest.mark.parametrize("dies_after", [1, 2, 3, 4, 5])
def test_answers_that_are_committed_are_not_asked_for_again(dies_after: int, tmp_path: Path) -> None:
    job = Dying(tmp_path, dies_after)
    assert job.to_the_end().table.num_rows
    assert job.keys == Counter(range(4))


@pytest.mark.parametrize("slots", [1, 2])
def test_rows_that_wait_outlive_the_job_and_their_windows(slots: int, tmp_path: Path) -> None:
    job = Dying(tmp_path, 4, holds=True, slots=slots)
    assert job.to_the_end().table.num_rows
    assert job.keys == Counter({0: 2, 1: 2, 2: 2, 3: 1}), "what was not answered is asked for again"
