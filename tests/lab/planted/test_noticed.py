"""A share of `./run planted`: the tests notice what is planted, and only that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lab.planted.main import Fault, faults, noticed


@pytest.mark.parametrize("fault", faults()[5::25], ids=str)
def test_a_planted_fault_is_noticed(fault: Fault) -> None:
    assert noticed(fault) == ""


def test_a_fault_that_breaks_nothing_is_told_of() -> None:
    test = "tests/lab/planted/test_planted.py::test_a_text_that_is_there_twice_is_refused"
    assert noticed(replace(faults()[0], new=faults()[0].old + " ", test=test)) == "nobody noticed"


def test_a_fault_that_does_not_fit_is_told_of() -> None:
    assert noticed(replace(faults()[0], old="no line of this file")).startswith("its old text occurs 0 times in ")
