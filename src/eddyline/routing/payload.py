"""The payload of tuples: the stored values of their rows, looked up only when they are needed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eddyline.bound.evaluate import ErrorCount, mask
from eddyline.bound.expr import Expr, columns_of
from eddyline.routing.packet import Packet, in_parts
from eddyline.state.rows import Rows
from eddyline.state.stores.store import TooMuchText


class Payload:
    """Reads the stored values of the sources' rows."""

    def __init__(self, rows: Sequence[Rows], most: int) -> None:
        """`most` is the most bytes of values that are gathered at a time."""
        self._rows, self._most = rows, most

    def gather(self, packet: Packet, exprs: Sequence[Expr]) -> dict[Expr, pa.Array]:
        """The stored columns that some expressions need, for the tuples of a packet. Raises TooMuchText if they are too
        large for one packet (packet.in_parts)."""
        values: dict[Expr, pa.Array] = {}
        gathered, most = 0, self._most
        for expr in exprs:
            for column in columns_of(expr):
                if column not in values:
                    values[column] = array = self._rows[column.source].gather(column, packet.rows[column.source])
                    gathered += array.nbytes
                    if gathered > most and packet.size > 1:
                        raise TooMuchText(f"{packet.size} tuples have more than {most} bytes")
        return values

    def mask(self, predicate: Expr, packet: Packet, errors: ErrorCount) -> NDArray[np.bool_]:
        """For which tuples a predicate holds."""

        def found(some: Packet) -> NDArray[np.bool_]:
            return mask(predicate, self.gather(some, [predicate]), some.size, errors)

        masks = list(in_parts(packet, found))
        return masks[0] if len(masks) == 1 else np.concatenate(masks)
