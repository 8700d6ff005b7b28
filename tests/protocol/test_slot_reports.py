"""What the distribution manager is told about slots."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.balance.manager_state import ManagerState
from eddyline.balance.slot_map import SlotMap
from eddyline.engine.standing import StateSize
from eddyline.engine.watermarks import Advanced
from eddyline.optimizer.pressure import Pressure
from eddyline.protocol.adapted import Adapted, AfterBatch
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import COMBINED, Record
from eddyline.protocol.slot_reports import ROW_BYTES, on_disk, slot_reports
from eddyline.spill.accounts import TABLE, Spillable

EVEN = SlotMap(2, 4)
Account = tuple[int, int, int, float, int, float]


def record(slot: int, *accounts: Account, cpu: float = 1.0, rows_in: int = 0) -> Record:
    table = np.array(list(accounts), TABLE)
    held = StateSize(0, int(table["bytes"].sum()))
    return Record(slot, cpu=cpu, rows_in=rows_in, held=held, spillable=Spillable(table.tobytes()))


def left(*groups: int) -> Ledger:
    return Ledger().begin(Moves(groups), Advanced(), 4)


def test_cpu_is_shared_out_by_the_rows_that_arrived() -> None:
    """Group 0 holds most rows, and gets none any more."""
    records = [record(0, (0, 900, 9000, 0.0, 9, 0.0), (1, 100, 1000, 0.0, 0, 30.0), cpu=2.0), record(1)]
    table = slot_reports(Adapted(Moves(), EVEN, ManagerState()), AfterBatch(Ledger(), records))[0].table
    assert table["cpu"].tolist() == [0.0, 2.0] and table["bytes"].tolist() == [9000, 1000]


def test_rows_of_the_log_that_are_not_in_memory_are_on_disk() -> None:
    records = [
        record(0, (0, 10, 500, 0.0, 0, 0.0), (7, 5, 250, 0.0, 0, 0.0)),
        record(1, (3, 20, 1000, 0.0, 0, 0.0), (7, 5, 250, 0.0, 0, 0.0)),
        Record(COMBINED),
    ]
    assert not on_disk(EVEN, AfterBatch(Ledger(), records, live=95)).any(), "no group has left"
    found = on_disk(EVEN, AfterBatch(left(0, 1, 2, 7), records, live=95))
    assert found.tolist() == pytest.approx([2000.0, 1000.0]), "60 rows of 50 bytes; every slot has group 7"
    assert on_disk(EVEN, AfterBatch(left(0), records, live=95), copies=2).sum() == pytest.approx(155 * 50)
    assert not on_disk(EVEN, AfterBatch(left(0), records, live=20)).any()
    nothing = [record(0), record(1)]
    assert on_disk(EVEN, AfterBatch(left(0), nothing, live=3)).tolist() == [3.0 * ROW_BYTES, 0.0]


@pytest.mark.parametrize(("waiting", "told"), [(0, 0), (99, 0), (100, 100), (5000, 5000)])
def test_what_the_next_batch_takes_is_no_backlog(waiting: int, told: int) -> None:
    records = [record(0, rows_in=50), record(1, rows_in=150)]
    after = AfterBatch(Ledger(), records, pressure=Pressure(waiting))
    reports = slot_reports(Adapted(Moves(), EVEN, ManagerState()), after)
    assert [report.backlog for report in reports] == [told, told]


def test_only_slots_spill_whose_groups_leave_or_are_swept() -> None:
    after = AfterBatch(Ledger(), [record(slot) for slot in range(2)])
    for moves, spilling in (
        (Moves(), [False, False]),
        (Moves(leave=(3,)), [False, True]),
        (Moves(sweep=(0,)), [True, False]),
        (Moves(leave=(4,)), [True, True]),
    ):
        reports = slot_reports(Adapted(moves, EVEN, ManagerState()), after)
        assert [report.spilling for report in reports] == spilling
