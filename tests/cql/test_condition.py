"""Conditions outside a script. tests/plan/test_preference.py has wrong ones."""

from __future__ import annotations

import pytest

from eddyline.cql.condition import parse_condition
from eddyline.errors import ScriptError


@pytest.mark.parametrize("text", ["", "  ", "-- nothing"])
def test_an_empty_text_is_no_condition(text: str) -> None:
    with pytest.raises(ScriptError, match="there is no condition"):
        parse_condition(text)


def test_a_place_is_one_of_the_text() -> None:
    with pytest.raises(ScriptError) as error:
        parse_condition("a = 1 AND (b = 2")
    assert error.value.source_line == "a = 1 AND (b = 2"
