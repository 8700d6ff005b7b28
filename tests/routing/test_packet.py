"""Packets keep rows, signature and build numbers together, whichever tuples are taken and however packets are
merged."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.routing.packet import Packet, merged, started


def tuples(packet: Packet) -> list[tuple[int, ...]]:
    """The rows of each tuple, by source, and the number of the build that started it."""
    numbers = packet.numbers if packet.numbers.size == packet.size else np.full(packet.size, packet.numbers[0])
    return list(zip(*(packet.rows[s].tolist() for s in sorted(packet.rows)), numbers.tolist(), strict=True))


def test_packets() -> None:
    packet = Packet({0: np.array([4, 5, 6])}, (0b1, 0b1), np.array([9]), 3)
    joined = packet.joined(np.array([0, 0, 2]), {3: np.array([7, 8, 9])}, (0b1001, 0b1))
    assert joined.signature == (0b1001, 0b1) and joined.size == 3 and joined.numbers.tolist() == [9]
    assert joined.rows[0].tolist() == [4, 4, 6] and joined.rows[3].tolist() == [7, 8, 9]
    assert joined.take(np.array([True, False, True])).rows[3].tolist() == [7, 9]
    assert joined.take(np.array([2])).rows[0].tolist() == [6]
    assert joined.take(slice(1, None)).size == 2
    passed = packet.passed(2)
    assert passed.signature == (0b1, 0b101) and tuples(passed) == tuples(packet)
    assert packet.signature == (0b1, 0b1) and packet.size == 3


def test_a_packet_begins_with_the_rows_of_one_build() -> None:
    packet = started(2, 10, 13, 77)
    assert packet.signature == (0b100, 0) and packet.size == 3
    assert tuples(packet) == [(10, 77), (11, 77), (12, 77)]


def test_numbers_go_with_their_tuples() -> None:
    packet = Packet({0: np.array([4, 5, 6])}, (1, 0), np.array([3, 1, 2]), 3)
    assert tuples(packet.joined(np.array([2, 0, 0]), {1: np.array([7, 8, 9])}, (3, 0))) == [
        (6, 7, 2),
        (4, 8, 3),
        (4, 9, 3),
    ]
    assert tuples(packet.take(np.array([False, True, True]))) == [(5, 1), (6, 2)]
    assert tuples(packet.take(slice(1, 2))) == [(5, 1)]
    assert tuples(packet.take(slice(1, 2)).joined(np.array([0, 0]), {1: np.array([1, 2])}, (3, 0))) == [
        (5, 1, 1),
        (5, 2, 1),
    ]
    assert packet.take(np.zeros(3, bool)).size == 0
    assert tuples(packet.passed(0)) == [(4, 3), (5, 1), (6, 2)]


def test_merged_packets_keep_the_number_of_every_tuple() -> None:
    one = Packet({0: np.array([1, 2]), 1: np.array([5, 6])}, (3, 0), np.array([8]), 2)
    same_build = Packet({0: np.array([3]), 1: np.array([5])}, (3, 0), one.numbers, 1)
    single = Packet({0: np.array([4]), 1: np.array([4])}, (3, 0), np.array([3]), 1)
    each = Packet({0: np.array([7, 8]), 1: np.array([0, 1])}, (3, 0), np.array([2, 9]), 2)
    assert merged([one]) is one
    assert merged([one, same_build]).numbers.size == 1
    for parts in ([one, same_build], [one, single], [single, one], [single, single], [each, one, single], [one, each]):
        whole = merged(parts)
        assert tuples(whole) == [t for part in parts for t in tuples(part)]
        assert whole.size == sum(part.size for part in parts) and whole.signature == (3, 0)
        assert whole.numbers.size in (1, whole.size)


@pytest.mark.parametrize("seed", range(20))
def test_merging_and_taking_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    packets: list[Packet] = []
    wanted: list[list[tuple[int, ...]]] = []
    for number in range(8):
        n = int(rng.integers(1, 4))
        packets.append(Packet({0: rng.integers(0, 99, n)}, (1, 0), np.array([number]), n))
        wanted.append(tuples(packets[-1]))
    while len(packets) > 1:
        i = int(rng.integers(len(packets) - 1))
        whole, both = merged(packets[i : i + 2]), wanted[i] + wanted[i + 1]
        if whole.size > 1:
            keep = rng.random(whole.size) < 0.9
            keep[0] = True
            whole, both = whole.take(keep), [t for t, kept in zip(both, keep, strict=True) if kept]
        packets[i : i + 2], wanted[i : i + 2] = [whole], [both]
        assert tuples(whole) == both
