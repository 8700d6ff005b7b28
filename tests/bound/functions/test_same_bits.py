"""Every function of the table gives the same bits in batches of every size and in every layout of its columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from eddyline.bound import functions
from lab.fuzz.layouts import LAYOUTS
from lab.fuzz.same_bits import check
from tests.support.function_cases import columns, typed

NAMES = [f.name for f in functions.table()]
FEW = 3


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_of_its_calls(name: str) -> None:
    cases = typed(name)
    for case, _ in cases[:: -(-len(cases) // FEW)]:
        rows = columns(case)
        check(case.over, rows.take(pa.array(range(0, len(rows), -(-len(rows) // 20)))))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_all_its_calls(name: str) -> None:
    for number, (case, _) in enumerate(typed(name)):
        check(case.over, columns(case), small=[list(LAYOUTS)[number % len(LAYOUTS)]])
