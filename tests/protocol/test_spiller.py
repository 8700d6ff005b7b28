"""What the spiller decides after a batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from eddyline.balance.decided import ForcedSpill
from eddyline.balance.slot_map import SlotMap
from eddyline.engine.standing import StateSize
from eddyline.engine.watermarks import Advanced
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.protocol.record import COMBINED, Record
from eddyline.protocol.spiller import HIGH, Spiller, spill_delay
from eddyline.settings import from_mapping
from eddyline.spill.accounts import TABLE, Spillable
from tests.support.jobs import bound

QUERY = bound(
    "SELECT a.k FROM a [RANGE 20 MICROSECONDS], b [RANGE 50 MICROSECONDS], c WHERE a.k = b.k AND b.k = c.k",
    a="k",
    b="k",
    c="k",
)


def spiller(**settings: Any) -> Spiller:
    return Spiller(QUERY, from_mapping({"memory": 1000, **settings}))


def record(held: int, groups: dict[int, int], growth: int = 0, slot: int = 0) -> Record:
    """That of a slot which holds so many bytes, and of some groups so many each; a higher one is more productive."""
    table = np.array([(group, 1, size, float(group * size), 0, 1) for group, size in groups.items()], TABLE)
    return Record(slot, held=StateSize(0, held), spillable=Spillable(table.tobytes(), 0, growth))


def at(watermark: int | None) -> Advanced:
    return Advanced(used=watermark)


GROUPS = dict.fromkeys(range(10), 70)


@pytest.mark.parametrize(
    ("held", "growth", "leave"),
    [
        (700, 50, ()),
        (700, 51, (0, 1, 2, 3, 4)),  # 300 bytes are 30 %
        (751, -100, (0, 1, 2, 3, 4)),
        (1200, 0, (0, 1, 2, 3, 4, 5, 6)),  # down to 750
        (9000, 0, tuple(range(10))),
    ],
)
def test_groups_leave_where_a_slot_would_be_nearly_full(held: int, growth: int, leave: tuple[int, ...]) -> None:
    assert HIGH == 0.75
    some = spiller()
    assert some(Ledger(), at(None), [record(held, GROUPS, growth), record(100, GROUPS, slot=1)], 0) == Moves(
        leave, cool=leave
    )
    decisions = some.decisions()
    assert [d.kind for d in decisions] == (["spill"] if leave else []) and some.decisions() == []
    if leave:
        assert decisions[0].measured["groups"] == len(leave) and decisions[0].measured["bytes"] == 70 * len(leave)
        assert decisions[0].what.startswith(f"{len(leave)} groups of 10 in memory leave it")
        assert "memory is 1 KB" in decisions[0].why


def test_where_most_groups_are_cold_less_may_be_in_memory() -> None:
    for cold, leave in ((128, ()), (129, (200, 201, 202, 203, 204))):
        ledger = Ledger().begin(Moves(tuple(range(cold)), cool=tuple(range(cold))), at(None), 256)
        groups = {200 + group: size for group, size in GROUPS.items()}
        assert spiller()(ledger, at(None), [record(700, groups)], 10**6).leave == leave


def test_groups_of_several_slots_leave_together() -> None:
    records = [record(800, {2: 400, 9: 400}), record(800, {1: 400, 8: 400}, slot=1), Record(COMBINED)]
    assert spiller()(Ledger(), at(None), records, 0).leave == (1, 2)
    assert spiller(spill_policy="most-productive")(Ledger(), at(None), records, 0).leave == (8, 9)
    assert spiller(spill_share=0.5)(Ledger(), at(None), records, 0).leave == (1, 2, 8, 9)


def test_nothing_leaves_that_is_not_there() -> None:
    some = spiller()
    assert not some(Ledger(), at(None), [record(800, {})], 0) and not some.decisions()


def test_a_group_is_swept_before_its_results_are_later_than_promised() -> None:
    some, ledger = spiller(), Ledger().begin(Moves((3, 5)), at(100), 256)
    nothing = [record(0, {})]
    assert some(ledger, at(105), nothing, 0).sweep == ()  # how far the next batch gets is not known
    ledger = ledger.begin(Moves((4,)), at(105), 256)
    assert some(ledger, at(110), nothing, 0).sweep == ()  # the next gets to 115: 15 behind
    assert not some.decisions()
    assert some(ledger, at(114), nothing, 0).sweep == ()  # to 118
    ledger = ledger.begin(Moves((9,)), at(114), 256)
    assert some(ledger, at(118), nothing, 0).sweep == (3, 4, 5)  # to 122: 22, 17 (which is soon) and 8 behind
    (decision,) = some.decisions()
    assert decision.kind == "sweep" and decision.what == "3 groups of 4 with rows on disk are swept"
    assert decision.measured == {"groups": 3.0, "late": 22e-6}
    ledger = ledger.begin(Moves(sweep=(3, 4, 5)), at(118), 256)
    assert some(ledger, at(126), nothing, 0).sweep == ()  # to 134: 20 and 16 behind
    assert some(ledger, at(131), nothing, 0).sweep == (3, 4, 5, 9)  # to 136


def test_groups_that_left_before_the_watermark_was_known_are_swept_once_it_is() -> None:
    some, ledger = spiller(), Ledger().begin(Moves((3,)), at(None), 256)
    assert some(ledger, at(None), [], 0).sweep == ()
    assert some(ledger, at(7), [], 0).sweep == (3,)


def test_the_delay_is_the_smallest_window_unless_it_is_set() -> None:
    assert spill_delay(QUERY, from_mapping({})) == 20
    assert spill_delay(QUERY, from_mapping({"spill_delay": 1.5})) == 1_500_000
    endless = bound("SELECT a.k FROM a, b WHERE a.k = b.k", a="k", b="k")
    assert spill_delay(endless, from_mapping({})) is None
    some = Spiller(endless, from_mapping({"memory": 1000}))
    assert some(Ledger().begin(Moves((3,)), at(0), 256), at(10**15), [], 0) == Moves()


def test_where_a_source_that_follows_leaves_everything_does() -> None:
    """With 256 groups that lead, group 300 is one of a source that follows."""
    groups = {1: 200, 2: 200, 300: 700}
    moves = spiller()(Ledger(), at(None), [record(900, groups)], 0)
    assert moves.leave == moves.cool == (1, 2), "what leads leaves first"
    moves = spiller()(Ledger(), at(None), [record(1200, groups)], 0)
    assert moves.leave == moves.cool == (1, 2, 300)
    ledger = Ledger().begin(moves, at(100), 256).begin(Moves(sweep=(7,)), at(115), 256)
    assert set(spiller()(ledger, at(130), [record(0, {})], 0).sweep) == set(range(256)), "all groups miss results"


def test_cold_groups_get_warm_where_there_is_room_for_all_their_rows() -> None:
    """There are 256 groups; 300 bytes are what slots may hold with them."""
    out = tuple(range(10))
    ledger = Ledger().begin(Moves(out, cool=out), at(100), 256)
    here = record(100, {20: 60, 21: 40})  # 50 bytes a row
    for logged, warm in ((6, out), (100, out), (256, (0, 1, 2, 3)), (2560, ())):
        some = spiller()
        moves = some(ledger, at(130), [here], logged)
        assert moves.sweep == out and moves.warm == warm and not moves.leave, logged
        assert [d.kind for d in some.decisions()] == (["sweep", "warm"] if warm else ["sweep"])
    assert spiller()(ledger, at(110), [here], 6).warm == (), "what is not swept stays cold"
    assert spiller()(ledger, at(130), [record(600, {20: 60})], 6).warm == ()


def test_sources_that_follow_get_warm_together_with_all_others() -> None:
    out = (1, 2, 300)
    ledger = Ledger().begin(Moves(out, cool=out), at(100), 256)
    assert spiller()(ledger, at(130), [record(0, {})], 3).warm == out, "3 rows take about 300 bytes"
    assert spiller()(ledger, at(130), [record(0, {})], 4).warm == ()


def test_no_group_stays_cold_in_a_job_that_continues_without_a_delay() -> None:
    """Groups 1 and 2 are cold, group 4 has left: all are swept, and while group 5 leaves the cold ones get warm."""
    endless = bound("SELECT a.k FROM a, b WHERE a.k = b.k", a="k", b="k")
    some = Spiller(endless, from_mapping({"memory": 1000}))
    ledger = Ledger().begin(Moves((1, 2, 4), cool=(1, 2)), at(0), 256)
    moves = some(ledger, at(10), [record(900, {5: 900})], 10**6)
    assert moves == Moves((5,), (1, 2, 4), (), (1, 2))
    assert [d.kind for d in some.decisions()] == ["spill", "warm"]
    ledger = ledger.begin(moves, at(10), 256)
    assert not ledger.generations.cold and set(ledger.generations.left) == {1, 2, 4, 5}
    assert some(ledger, at(20), [record(0, {})], 10**6) == Moves()


def test_where_groups_have_slots_only_the_cold_ones_of_a_slot_make_it_leave_room() -> None:
    """Slot 0 has the groups below 128."""
    cold, even = tuple(range(65)), SlotMap(2, 256)
    ledger = Ledger().begin(Moves(cold, cool=cold), at(None), 256)
    for slot, group in ((0, 100), (1, 200)):
        records = [record(700, {group: 700}, slot=slot), record(0, {}, slot=1 - slot)]
        assert spiller()(ledger, at(None), records, 10**6, even).leave == ((100,) if slot == 0 else ())


def test_where_groups_have_slots_those_get_warm_whose_slot_has_room() -> None:
    out, even = (0, 1, 2, 200, 201), SlotMap(2, 256)
    ledger = Ledger().begin(Moves(out, cool=out), at(100), 256)
    records = [record(600, {20: 600}), record(150, {130: 150}, slot=1)]  # 375 bytes a row
    assert spiller()(ledger, at(130), records, 50, even).warm == (200, 201), "a group takes about 73 bytes"
    assert spiller()(ledger, at(130), records, 80, even).warm == (200,)
    assert spiller()(ledger, at(130), records, 50).warm == (), "without a map any slot may have any group"


def test_a_slot_is_forced_to_spill_its_least_productive_groups() -> None:
    some, spill = spiller(), ForcedSpill(1, 100, "others make more")
    here, moves = record(300, {7: 70, 5: 70, 9: 70, 300: 90}, slot=1), Moves(leave=(1,), sweep=(2,), cool=(1,))
    assert some.force(moves, here, spill) == Moves((1, 5, 7), (2,), (1, 5, 7)), "the others are of all slots, or better"
    (decision,) = some.decisions()
    assert decision.kind == "spill" and decision.measured["bytes"] == 140
    assert decision.why == "slot 1 is forced to spill 100 bytes: others make more"
    assert some.force(moves, record(300, {1: 70, 300: 90}), spill) == moves and not some.decisions()
    endless = Spiller(bound("SELECT a.k FROM a, b WHERE a.k = b.k", a="k", b="k"), from_mapping({"memory": 1000}))
    assert endless.force(Moves(), here, spill) == Moves((5, 7)), "they join new rows among themselves"
