"""Codes that several lists have, as NumPy would find them."""

from __future__ import annotations

import numpy as np

from eddyline.kernels.matches import find, mark


def test_codes_that_all_lists_have() -> None:
    random = np.random.default_rng(0)
    lists = [random.integers(0, 1 << 32, 300).astype(np.uint32) for _ in range(3)]
    lists[1][:90], lists[2][:60] = lists[0][:90], lists[0][:60]
    cells, few = np.zeros(1 << 16, np.uint8), np.zeros(256, np.uint8)
    for bit, codes in enumerate(lists):
        for some in (cells, few):
            mark(codes, np.full(codes.size, 1 << bit, np.uint8), some)
    here = {mask: [set((codes & mask).tolist()) for codes in lists] for mask in (0xFFFF, 0xFF)}
    for some, mask in ((cells, 0xFFFF), (few, 0xFF)):
        out = np.zeros(300, np.bool_)
        find(lists[0], 7, some, out)
        expected = [all(code & mask in codes for codes in here[mask]) for code in lists[0].tolist()]
        assert out.tolist() == expected and out[:60].all()
    assert not out.all()


def test_each_code_has_flags_of_its_own() -> None:
    cells = np.zeros(4, np.uint8)
    mark(np.array([1, 5, 2], np.uint32), np.array([1, 4, 2], np.uint8), cells)
    assert cells.tolist() == [0, 5, 2, 0]
