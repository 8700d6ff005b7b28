"""The codec: values come back, nothing else does, and a digest changes with what is written."""

from __future__ import annotations

import doctest
import math
from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass
from typing import Any

import numpy as np
import pytest

from eddyline import codec
from eddyline.codec import Snapshot, Unreadable, as_json, of_json, packed, schema, unpacked


@dataclass(frozen=True)
class Named:
    rows: int
    by_source: Mapping[int, int | None]


class Tree(Snapshot):
    named: Named
    probes: Mapping[tuple[int, int], float]
    children: tuple[Tree, ...] = ()


VALUE = Tree(Named(3, {0: None, 7: 5}), {(1, 2): math.inf, (0, 1): 0.1}, (Tree(Named(0, {}), {}),))


def test_values_come_back() -> None:
    assert unpacked(packed(VALUE), Tree) == VALUE
    assert of_json(as_json(VALUE.named), Named) == VALUE.named
    assert as_json(VALUE.named) == b'{"by_source": {"0": null, "7": 5}, "rows": 3}'


def test_numbers_of_numpy_are_numbers() -> None:
    assert unpacked(packed(Named(np.int64(3), {})), Named) == Named(3, {})
    assert of_json(as_json(Named(np.int64(3), {})), Named) == Named(3, {})


@pytest.mark.parametrize("data", [b"", packed(VALUE)[:-1], packed(VALUE.named), packed([1, 2, 3]), b"\xc1"])
def test_nothing_else_comes_back(data: bytes) -> None:
    with pytest.raises(Unreadable):
        unpacked(data, Tree)


def test_a_digest_changes_with_what_is_written() -> None:
    def made(*fields: tuple[str, Any], name: str = "Some") -> str:
        return schema(make_dataclass(name, fields, frozen=True))

    same = made(("a", int), ("b", str))
    assert same == made(("a", int), ("b", str))
    others = [
        made(("b", str), ("a", int)),
        made(("a", int)),
        made(("a", int), ("b", str | None)),
        made(("a", int), ("c", str)),
        made(("a", float), ("b", str)),
        made(("a", int), ("b", str), name="Other"),
    ]
    assert len({same, *others}) == 7
    assert schema(Tree) == schema(Tree) != schema(Tree, Named)


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(codec).failed == 0
