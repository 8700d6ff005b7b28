"""The ledger of the groups on disk: what it says is missing, and how long rows are kept for that."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eddyline.codec import as_json, of_json
from eddyline.engine.watermarks import Advanced
from eddyline.protocol.ledger import Ledger, Moves
from eddyline.spill.generations import Generations
from tests.support.properties import examples


def at(time: int) -> Advanced:
    """Slots that have advanced so far."""
    return Advanced({"a": time, "b": time + 1}, used=time)


def begun(*moves: Moves) -> Ledger:
    """A ledger after batches that begin with these moves, at the times 10, 20, ..."""
    ledger = Ledger()
    for number, some in enumerate(moves, 1):
        ledger = ledger.begin(some, at(10 * number))
    return ledger


def test_nothing_on_disk() -> None:
    none = Ledger()
    assert none.held is None and none.clean == 0 and not Moves()
    assert none.begin(Moves(), at(10)) is none and none.whole(()) is none


def test_a_group_that_leaves_was_clean_until_then() -> None:
    ledger = begun(Moves(), Moves(leave=(3,)))
    assert ledger.epoch == 1, "a batch without moves begins no epoch"
    assert ledger.generations == Generations({3: (1,)}, {3: 1})
    assert ledger.clean == 1 and ledger.held == at(20)


def test_a_group_that_leaves_again_is_clean_no_later() -> None:
    """What it had in memory meanwhile is its second generation."""
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3,)), Moves(leave=(3, 4)))
    assert ledger.generations == Generations({3: (1, 2, 3), 4: (3,)}, {3: 1, 4: 3})
    assert ledger.clean == 1 and ledger.held == at(10)


def test_the_group_that_was_clean_first_holds_back() -> None:
    first = begun(Moves(leave=(3,)), Moves(leave=(4,)))
    assert first.held == at(10)
    swept = first.begin(Moves(sweep=(3,)), at(30))
    assert swept.generations == Generations({3: (1,), 4: (2,)}, {3: 3, 4: 2}) and swept.held == at(20)
    assert swept.begin(Moves(sweep=(3, 4)), at(40)).held == at(40)
    assert swept.begin(Moves(sweep=(4,)), at(40)).held == at(30)


def test_a_sweep_leaves_only_the_last_time_at_which_a_group_left() -> None:
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3,)), Moves(sweep=(3,)))
    assert ledger.generations == Generations({3: (2,)}, {3: 3}), "rows of both generations are on disk still"


def test_a_group_that_is_swept_and_leaves_before_one_batch() -> None:
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3,), sweep=(3,)))
    assert ledger.generations == Generations({3: (1, 2)}, {3: 2}) and ledger.held == at(20)


def test_groups_with_nothing_on_disk() -> None:
    ledger = begun(Moves(leave=(3, 4)), Moves(sweep=(3, 4)))
    assert ledger.whole((3,)).generations == Generations({4: (1,)}, {4: 2}) and ledger.whole((3,)).held == at(20)
    whole = ledger.whole((3, 4))
    assert whole == Ledger(epoch=2) and whole.held is None and whole.clean == 2
    assert whole.begin(Moves(leave=(4,)), at(50)).generations == Generations({4: (3,)}, {4: 3}), "epochs go on"


SOME = st.sets(st.integers(0, 3)).map(lambda groups: tuple(sorted(groups)))
EVENTS = st.lists(st.tuples(SOME, SOME, SOME), max_size=8)


@given(EVENTS)
@examples(200)
def test_a_ledger_beside_a_list_of_what_happened(events: list[tuple[tuple[int, ...], ...]]) -> None:
    """By group, when it left and when it was clean last are remembered in full; so is when each epoch began."""
    ledger, epoch, began = Ledger(), 0, {0: at(-1)}
    left: dict[int, list[int]] = {}
    clean: dict[int, int] = {}
    for number, (leave, sweep, whole) in enumerate(events):
        sweep = tuple(group for group in sweep if group in left)
        ledger = ledger.begin(Moves(leave, sweep), at(number))
        if leave or sweep:
            epoch += 1
            began[epoch] = at(number)
        for group in sweep:
            clean[group] = epoch
        for group in leave:
            left.setdefault(group, []).append(epoch)
            clean.setdefault(group, epoch)
        gone = tuple(group for group in sweep if group in whole and group not in leave)
        ledger = of_json(as_json(ledger.whole(gone)), Ledger)
        for group in gone:
            del left[group], clean[group]
        assert ledger.epoch == epoch and ledger.generations.clean == clean
        assert {group: epochs[-1] for group, epochs in ledger.generations.left.items()} == {
            group: epochs[-1] for group, epochs in left.items()
        }
        for group, epochs in left.items():
            after = [e for e in epochs if e > clean[group]]
            assert list(ledger.generations.left[group][-len(after) :] if after else ()) == after
        assert ledger.held == (began[min(clean.values())] if clean else None)
        assert ledger.marks.keys() == set(clean.values()), "nothing else is remembered"
