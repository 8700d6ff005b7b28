"""The ledger of the groups on disk: what it says is missing, and how long rows are kept for that."""

from __future__ import annotations

import numpy as np
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


LEADING = 10


def needed(advanced: Advanced, held: Advanced | None) -> dict[str, int]:
    """Rows are needed for 10, and those of b for 15."""
    used = advanced.used or 0
    return {"a": used - 10, "b": used - 15}


def begun(*moves: Moves) -> Ledger:
    """A ledger after batches that begin with these moves, at the times 10, 20, ..."""
    ledger = Ledger()
    for number, some in enumerate(moves, 1):
        ledger = ledger.begin(some, at(10 * number), LEADING)
    return ledger


def test_nothing_on_disk() -> None:
    none = Ledger()
    assert none.held is None and none.clean == 0 and not Moves()
    assert none.begin(Moves(), at(10), LEADING) is none and none.settled(lambda group: "ab", needed, LEADING) is none


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
    swept = first.begin(Moves(sweep=(3,)), at(30), LEADING)
    assert swept.generations == Generations({3: (1,), 4: (2,)}, {3: 3, 4: 2}) and swept.held == at(20)
    assert swept.begin(Moves(sweep=(3, 4)), at(40), LEADING).held == at(40)
    assert swept.begin(Moves(sweep=(4,)), at(40), LEADING).held == at(30)


def test_a_sweep_leaves_only_the_last_time_at_which_a_group_left() -> None:
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3,)), Moves(sweep=(3,)))
    assert ledger.generations == Generations({3: (2,)}, {3: 3}), "rows of both generations are on disk still"


def test_a_group_that_is_swept_and_leaves_before_one_batch() -> None:
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3,), sweep=(3,)))
    assert ledger.generations == Generations({3: (1, 2)}, {3: 2}) and ledger.held == at(20)


def test_groups_whose_rows_on_disk_are_not_needed_any_more() -> None:
    """Group 3 left at time 10, when `b` was at 11, and group 4 at time 20."""
    ledger = begun(Moves(leave=(3,)), Moves(leave=(4,)))
    assert ledger.begin(Moves(), at(99), LEADING).settled(lambda group: "ab", needed, LEADING) is ledger, (
        "they are not swept"
    )
    early = ledger.begin(Moves(sweep=(3, 4)), at(26), LEADING)
    assert early.settled(lambda group: "ab", needed, LEADING) is early, "the row of time 11 is needed until 26"
    assert early.settled(lambda group: "a", needed, LEADING).generations == Generations({4: (2,)}, {4: 3}), (
        "rows of b stay in memory"
    )
    later = ledger.begin(Moves(sweep=(3, 4)), at(27), LEADING).settled(lambda group: "ab", needed, LEADING)
    assert later.generations == Generations({4: (2,)}, {4: 3}) and later.held == at(27)
    assert later.settled(lambda group: "abt", needed, LEADING) is later, "rows of a table are needed for ever"
    last = ledger.begin(Moves(sweep=(3, 4)), at(37), LEADING).settled(lambda group: "ab", needed, LEADING)
    assert last == Ledger(epoch=3) and last.held is None and last.clean == 3
    assert last.begin(Moves(leave=(4,)), at(50), LEADING).generations == Generations({4: (4,)}, {4: 4}), "epochs go on"


def test_a_group_that_left_again_after_its_sweep_is_not_settled() -> None:
    ledger = (
        begun(Moves(leave=(3,)))
        .begin(Moves(sweep=(3,), leave=(3,)), at(99), LEADING)
        .begin(Moves(leave=(3,)), at(199), LEADING)
    )
    assert ledger.settled(lambda group: "ab", needed, LEADING).generations.left == {3: (2, 3)}
    swept = ledger.begin(Moves(sweep=(3,)), at(210), LEADING)
    assert swept.settled(lambda group: "ab", needed, LEADING).generations.left == {3: (3,)}, (
        "rows of time 199 may be on disk"
    )


def test_rows_come_when_the_watermark_passes_them() -> None:
    ledger = begun(Moves(leave=(3,)), Moves(leave=(3, 4)), Moves(sweep=(4,)), Moves(leave=(3,)))
    times = np.array([9, 10, 19, 20, 29, 30, 39, 40, 49, 50])
    released = ledger.released(50)
    assert released.came(times).tolist() == [0, 1, 1, 2, 2, 3, 3, 4, 4, 4]
    assert released.wait(times).tolist() == [False] * 9 + [True]
    assert Ledger().begin(Moves(leave=(3,)), Advanced(), LEADING).released(None).wait(times).all()


SOME = st.sets(st.integers(0, 3)).map(lambda groups: tuple(sorted(groups)))
EVENTS = st.lists(st.tuples(SOME, SOME, st.integers(0, 30)), max_size=8)


@given(EVENTS)
@examples(200)
def test_a_ledger_beside_a_list_of_what_happened(events: list[tuple[tuple[int, ...], tuple[int, ...], int]]) -> None:
    """By group, when it left and when it was clean last are remembered in full; so is when each epoch began."""
    ledger, epoch, began, now = Ledger(), 0, {0: at(0)}, 0
    left: dict[int, list[int]] = {}
    clean: dict[int, int] = {}
    for leave, sweep, time in events:
        now += time
        sweep = tuple(group for group in sweep if group in left)
        ledger = ledger.begin(Moves(leave, sweep), at(now), LEADING)
        if leave or sweep:
            epoch += 1
            began[epoch] = at(now)
        for group in sweep:
            clean[group] = epoch
        for group in leave:
            left.setdefault(group, []).append(epoch)
            clean.setdefault(group, epoch)
        ledger = of_json(as_json(ledger.settled(lambda group: "ab", needed, LEADING)), Ledger)
        for group in list(left):
            newest, since = began[left[group][-1]].newest, needed(began[clean[group]], None)
            if clean[group] >= left[group][-1] and all(newest[stream] < since[stream] for stream in "ab"):
                del left[group], clean[group]
        assert ledger.epoch == epoch and ledger.generations.clean == clean
        assert ledger.generations.left.keys() == left.keys()
        for group, epochs in left.items():
            told = list(ledger.generations.left[group])
            assert told == epochs[-len(told) :], "the last times at which it left"
            assert len(told) >= sum(e > clean[group] for e in epochs), "all since it was clean"
        assert ledger.held == (began[min(clean.values())] if clean else None)
        assert ledger.marks.keys() == {*clean.values(), *(e for some in ledger.generations.left.values() for e in some)}


COLD = st.lists(st.tuples(SOME, SOME, SOME, SOME, st.integers(0, 3)), max_size=10)


@given(COLD)
@examples(300)
def test_the_epochs_that_marks_tell_say_the_same_as_those_in_which_rows_came(events: list[tuple]) -> None:
    """A row of each time and group comes when the watermark passes its time. Marks of epochs that do not matter any
    more are gone; the rule must not notice."""
    ledger, now = Ledger(), 0
    began = [(0, 0)]
    for leave, sweep, cool, warm, ahead in events:
        sweep = tuple(group for group in sweep if group in ledger.generations.clean)
        cool = tuple(group for group in cool if group in leave and group not in ledger.generations.cold)
        ledger = ledger.begin(Moves(leave, sweep, cool, warm), at(now), LEADING)
        began.append((now, ledger.epoch))
        now += ahead
    times, groups = (part.ravel() for part in np.meshgrid(np.arange(now), np.arange(4)))
    came = np.array([max(epoch for start, epoch in began if start <= time) for time in times.tolist()], np.int64)
    told, some = ledger.released(now).came(times), ledger.generations
    assert (some.on_disk(groups, told) == some.on_disk(groups, came)).all()
    assert ((told >= some.clean_of(groups)) == (came >= some.clean_of(groups))).all()
    left, same = some.left_at(groups, told), some.left_at(groups, came)
    cold = same == came
    assert (left[~cold] == same[~cold]).all() and (left[cold] == told[cold]).all()
    for one in range(times.size):  # beside each other row
        assert ((np.maximum(told, told[one]) >= left) == (np.maximum(came, came[one]) >= same)).all()
