from __future__ import annotations

import doctest

import pytest

from eddyline.state.log import sealed as module
from eddyline.state.log.sealed import Broken, sealed, unsealed


def test_what_was_sealed_comes_back_and_nothing_else() -> None:
    data = sealed(b'{"a": 7}\n')
    assert unsealed(data) == b'{"a": 7}\n'
    for at in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            with pytest.raises(Broken):
                unsealed(bytes(changed))
    for length in range(len(data)):
        with pytest.raises(Broken):
            unsealed(data[:length])


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(module).failed == 0
