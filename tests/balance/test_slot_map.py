"""The slot map is total, whatever moves; its durable form is small and comes back as it was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.balance.slot_map import SlotMap
from eddyline.codec import as_json, of_json, packed, unpacked
from tests.support.properties import examples


@st.composite
def maps(draw: st.DrawFn) -> SlotMap:
    slots = draw(st.integers(1, 40))
    places = draw(st.lists(st.integers(0, slots - 1), min_size=1, max_size=300))
    return SlotMap.of(slots, places)


@examples(60)
@given(maps())
def test_the_durable_forms_come_back(one: SlotMap) -> None:
    assert of_json(as_json(one), SlotMap) == one == unpacked(packed(one), SlotMap)
    assert hash(of_json(as_json(one), SlotMap)) == hash(one)


@examples(60)
@given(maps(), st.data())
def test_a_map_stays_total(one: SlotMap, data: st.DataObject) -> None:
    groups = data.draw(st.lists(st.integers(0, one.groups - 1), unique=True))
    to = data.draw(st.integers(0, one.slots - 1))
    after = one.moved(groups, to)
    assert sorted(np.concatenate([after.groups_of(slot) for slot in range(one.slots)])) == list(range(one.groups))
    assert set(groups) <= set(after.groups_of(to).tolist())
    others = np.setdiff1d(np.arange(one.groups), np.array(groups, np.int64))
    assert (after.places[others] == one.places[others]).all()


@examples(60)
@given(maps(), st.integers(1, 60))
def test_another_number_of_slots_moves_only_groups_without_a_slot(one: SlotMap, slots: int) -> None:
    after = one.resized(slots)
    stay = one.places < slots
    assert (after.places[stay] == one.places[stay]).all()
    assert after.slots == slots


def test_groups_without_a_slot_are_spread_by_weight() -> None:
    weight = np.where(np.arange(12) == 11, 10.0, 1.0)
    after = SlotMap(4, 12).resized(3, weight)
    assert np.bincount(after.places, weight, 3).tolist() == [13.0, 4.0, 4.0]


def test_the_even_map_is_that_of_a_partitioning() -> None:
    for slots, groups in ((1, 256), (3, 256), (8, 7), (1000, 64_000)):
        assert SlotMap(slots, groups).places.tolist() == (np.arange(groups) * slots // groups).tolist()


def test_maps_of_other_sizes_differ() -> None:
    assert SlotMap(3, 9) != SlotMap(3, 12)
    assert SlotMap(3, 9) != SlotMap(2, 9)
    assert SlotMap(1, 4) != SlotMap(2, 4).moved(range(4), 0), "the number of slots is part of a map"


def test_the_map_of_many_groups_is_small() -> None:
    even = SlotMap(1000, 64_000)
    assert len(as_json(even)) < 60 + len(', "hot": [], "tracks": []')
    rng = np.random.default_rng(0)
    some = even.moved(rng.choice(64_000, 640, replace=False), 7)
    assert len(as_json(some)) < 5_000
    worst = SlotMap.of(1000, rng.integers(0, 1000, 64_000))
    assert len(as_json(worst)) < 140_000


def test_places_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="read-only"):
        SlotMap(2, 4).places[0] = 1


TOO_FAR = SlotMap(5, 3).moved([0], 4).elsewhere


@pytest.mark.parametrize(
    ("slots", "groups", "elsewhere"),
    [(0, 4, ""), (40_000, 4, ""), (2, 0, ""), (2, 4, "no base64!"), (2, 4, "AAAA"), (2, 3, TOO_FAR), (5, 4, TOO_FAR)],
)
def test_a_wrong_map_cannot_be_made(slots: int, groups: int, elsewhere: str) -> None:
    with pytest.raises(ValueError, match="slot map"):
        SlotMap(slots, groups, elsewhere)


def test_a_group_or_slot_that_does_not_exist_is_refused() -> None:
    with pytest.raises(IndexError):
        SlotMap(2, 4).moved([4], 0)
    with pytest.raises(ValueError, match="slot map"):
        SlotMap(2, 4).moved([3], 2)
