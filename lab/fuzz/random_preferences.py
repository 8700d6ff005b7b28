"""Preferences that change at random between the batches of a case: the result must not depend on them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pyarrow as pa

from eddyline.bound.expr import SourceColumn
from eddyline.bound.model import BoundQuery
from eddyline.errors import SettingError
from eddyline.plan.judges import judges
from eddyline.plan.plan import plan_of

NextPreference = Callable[[str], str]
"""The preference of the next batch, given the last one; an empty text for none."""


def random_preferences(query: BoundQuery, seed: int) -> NextPreference:
    """Preferences of a query, in two thirds of all cases: in half of the batches another one."""
    random = Random(f"preferences {seed}")
    plan = plan_of(query)
    columns = [c for n in range(len(query.sources)) for c in plan.layouts[n].stored if isinstance(c, SourceColumn)]
    if not columns or random.random() < 1 / 3:
        return lambda last: ""

    def chosen(last: str) -> str:
        if random.random() < 0.5:
            return last
        text = condition(query, random.choice(columns), random)
        try:
            judges(plan, text)
        except SettingError:  # a table that is read whole, or a type without an order
            return ""
        return text

    return chosen


def condition(query: BoundQuery, column: SourceColumn, random: Random) -> str:
    """A condition over one column."""
    name = f'"{query.sources[column.source].alias}"."{column.name}"'
    if pa.types.is_integer(column.type):
        return random.choice((f"{name} % 2 = {random.randint(0, 1)}", f"{name} > {random.randint(0, 5)}"))
    if pa.types.is_floating(column.type):
        return f"{name} > {random.random():.3f}"
    return random.choice((f"{name} IS NULL", f"{name} IS NOT NULL", f"CAST({name} AS VARCHAR) > 'b'"))
