"""Every function of the table against DuckDB, on every combination of edge values of the types it takes."""

from __future__ import annotations

import pytest

from eddyline.bound import functions
from tests.support.function_cases import columns, typed
from tests.support.grid import differences


@pytest.mark.parametrize("name", [f.name for f in functions.table()])
def test_as_duckdb(name: str) -> None:
    """A function without cases fails here, one that differs from DuckDB below."""
    cases = typed(name)
    assert cases, "no case of it can be typed"
    wrong = [line for case, expr in cases for line in differences(expr, case.sql, columns(case))]
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:20])


def test_aliases() -> None:
    """Every alias makes the call its function makes."""
    for function in functions.table():
        for alias, variant in function.aliases.items():
            case, expr = next((c, e) for c, e in typed(function.name) if not variant or c.variant == variant)
            assert functions.call(alias, case.args, "" if variant else case.variant) == expr, alias
    assert set(functions.names()) == {n for f in functions.table() for n in (f.name, *f.aliases)}
