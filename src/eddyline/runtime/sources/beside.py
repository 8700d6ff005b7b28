"""Facts about rows that are not in their text: columns from another place, and the place of a row for error messages.

The messages of a topic have both. Readers of text cut, filter and drop these facts together with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

RowNumbers = NDArray[np.int64]


@dataclass(frozen=True)
class Beside:
    """Columns of some rows, the numbers of these rows among all rows of a text, and a function that names the places of
    rows with such numbers."""

    columns: Mapping[str, pa.Array]
    rows: RowNumbers
    places: Callable[[RowNumbers], list[str]]

    def take(self, rows: RowNumbers) -> Beside:
        """The same for some of the rows, which are counted from 0."""
        return Beside(
            {name: values.take(pa.array(rows)) for name, values in self.columns.items()}, self.rows[rows], self.places
        )

    def slice(self, start: int, length: int) -> Beside:
        """The same for rows that are next to each other."""
        columns = {name: values.slice(start, length) for name, values in self.columns.items()}
        return Beside(columns, self.rows[start : start + length], self.places)

    def told(self, reasons: pa.Array) -> pa.Array:
        """The reasons why these rows are dead, with the places of the rows before them."""
        return pc.binary_join_element_wise(pa.array(self.places(self.rows), pa.string()), reasons, ": ")
