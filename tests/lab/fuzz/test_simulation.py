"""Random cases through the batch protocol, with crashes; and that a mistake in it would be noticed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eddyline.engine import slot
from eddyline.protocol import coordinator, restoring, turn
from eddyline.protocol.commit import LogFile
from eddyline.protocol.log import Log
from eddyline.protocol.parcel import RowsHead, as_shipment
from eddyline.settings import Settings
from eddyline.testing.case import Case
from eddyline.testing.clock import ManualClock
from eddyline.testing.oracle import Oracle
from lab.fuzz.generate import generate
from lab.fuzz.main import case_seed
from lab.fuzz.run import bound, expected_of, run, wrong
from lab.fuzz.shrink import shrink
from lab.fuzz.simulation import Simulation

SEED = int(os.environ.get("EDDYLINE_FUZZ_SEED", "20240229"))
CASES, CHUNKS = 30, 5


def durable(index: int) -> Case:
    """A case that goes through the protocol, whatever was drawn for it."""
    case = generate(case_seed(SEED, index))
    slots = min(int(str(case.settings["slots"])), 3)
    return replace(case, settings={**case.settings, "durable": index, "slots": slots})


def differences(indexes: Iterable[int]) -> list[str]:
    oracle, found = Oracle(), []
    for index in indexes:
        case = durable(index)
        try:
            different = wrong(run(case), expected_of(case, oracle))
        except Exception as error:
            different = repr(error)
        if different is not None:
            found.append(f"case {index} of seed {SEED}\n{case.script}\n{case.settings}\n{different}")
    return found


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_random_cases(chunk: int) -> None:
    share = CASES // CHUNKS
    found = differences(range(chunk * share, (chunk + 1) * share))
    assert not found, "\n\n".join(found)


def test_one_seed_is_one_story(tmp_path: Path) -> None:
    case = durable(3)
    settings = Settings(slots=2)
    told = []
    for folder in ("one", "two"):
        simulation = Simulation(case, bound(case), settings, str(tmp_path / folder), 5, crashes=0.05)
        table = simulation.run().table
        told.append((sorted(map(repr, table.to_pylist())), simulation.reached))
    assert told[0] == told[1] and told[0][1]["turn: the state is left"] > 4


# Mistakes that must be noticed


def drops_a_logged_row(patch: pytest.MonkeyPatch) -> None:
    def lossy(head: RowsHead, batch: pa.RecordBatch, slot: int) -> tuple[Any, pa.RecordBatch]:
        shipment, log = as_shipment(head, batch, slot)
        return shipment, log.slice(1)

    patch.setattr(turn, "as_shipment", lossy)


def drops_segments_too_early(patch: pytest.MonkeyPatch) -> None:
    def needed(file: LogFile, horizon: object) -> bool:
        return False

    patch.setattr(coordinator, "_needed", needed)


def forgets_what_was_merged(patch: pytest.MonkeyPatch) -> None:
    original: Callable[..., Any] = Log.write
    patch.setattr(Log, "write", lambda log, name, slot, epoch, rows, merged, least, by_group: original(
        log, name, slot, epoch, rows, (), least, by_group))  # fmt: skip


def winds_nothing_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(slot.Slot, "wind_back", lambda self: None)


def forgets_small_state(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(restoring, "restore_small", lambda home, slot, number, files: None)


@pytest.mark.parametrize(
    "mistake",
    [
        drops_a_logged_row,
        drops_segments_too_early,
        forgets_what_was_merged,
        winds_nothing_back,
        forgets_small_state,
    ],
)
def test_a_mistake_is_noticed(mistake: Callable[[pytest.MonkeyPatch], None]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        mistake(patch)
        assert any(differences([index]) for index in range(60)), f"nobody noticed: {mistake.__name__}"


@pytest.mark.long
def test_a_difference_that_only_the_protocol_shows_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    drops_a_logged_row(monkeypatch)
    oracle, tries = Oracle(), ManualClock()

    def fails(case: Case) -> bool:
        tries.advance(1.0)
        try:
            return wrong(run(case), expected_of(case, oracle)) is not None
        except Exception:
            return False

    case = next(c for c in map(durable, range(60)) if c.row_count < 300 and fails(c))
    small = shrink(case, fails, seconds=100, clock=tries)
    assert small.row_count < case.row_count and small.settings["durable"] is not None
