"""Groups as Python and NumPy would compute them."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels.groups import add_by_code, add_by_group, mixed


def twin(code: int, groups: int) -> int:
    h = code % 2**64
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    h = (h ^ h >> 27) * 0x94D049BB133111EB % 2**64
    return (h ^ h >> 31) % groups


@pytest.mark.parametrize("groups", [1, 2, 7, 256, 65_536])
def test_groups(groups: int) -> None:
    limits = np.iinfo(np.int64)
    codes = np.random.default_rng(groups).integers(limits.min, limits.max, 500)
    codes[:5] = [0, 1, -1, limits.min, limits.max]
    out = np.full(codes.size, -1)
    mixed(codes, groups, out)
    assert out.tolist() == [twin(int(code), groups) for code in codes]


@pytest.mark.parametrize("number", [1, -1])
def test_rows_by_group(number: int) -> None:
    groups = np.random.default_rng(0).integers(0, 9, 1000)
    out = np.full(10, 5)
    add_by_group(groups[100:900], number, out)
    assert out.tolist() == (5 + number * np.bincount(groups[100:900], minlength=10)).tolist()


@pytest.mark.parametrize("groups", [7, 64])
def test_rows_by_the_group_of_their_codes(groups: int) -> None:
    codes, out, expected = (
        np.random.default_rng(1).integers(-50, 50, 5000),
        np.full(groups, 5),
        np.empty(5000, np.int64),
    )
    add_by_code(codes, groups, -1, out)
    mixed(codes, groups, expected)
    assert out.tolist() == (5 - np.bincount(expected, minlength=groups)).tolist()
