"""Groups as Python would compute them."""

from __future__ import annotations

import numpy as np
import pytest

from eddyline.kernels.groups import mixed


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
