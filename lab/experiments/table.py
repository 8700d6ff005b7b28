"""A table of measurements: named columns and rows, written as CSV and shown as Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Value = str | int | float


@dataclass
class Table:
    """Rows of values, one value for each of `columns`.

    >>> table = Table(("n", "seconds"))
    >>> table.add(1, 0.25)
    >>> print(table.markdown())
    | n | seconds |
    | --- | --- |
    | 1 | 0.25 |
    """

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]] = field(default_factory=list)

    def add(self, *values: Value) -> None:
        """Add a row."""
        if len(values) != len(self.columns):
            raise ValueError(f"{len(values)} values for {len(self.columns)} columns")
        self.rows.append(values)

    def where(self, **wanted: Value) -> Iterator[dict[str, Value]]:
        """The rows with these values in the named columns, as dictionaries by column."""
        for row in self.rows:
            named = dict(zip(self.columns, row, strict=True))
            if all(named[column] == value for column, value in wanted.items()):
                yield named

    def write(self, path: Path) -> None:
        """Write the table as CSV."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows([as_text(value) for value in row] for row in self.rows)

    def markdown(self) -> str:
        """The table as Markdown."""
        lines = [self.columns, ("---",) * len(self.columns), *([as_text(v) for v in row] for row in self.rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_text(value: Value) -> str:
    """A value as tables show it: four digits of a fraction, no digits behind the point from 1000 on."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
