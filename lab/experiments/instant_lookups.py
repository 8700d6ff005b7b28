"""Lookups that answer at once from memory, by keys that are the numbers of the table's rows in some order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from eddyline.engine.lookups.look_up import Answer, AnswersKept, Request


class InstantLookups:
    """Answers with the next call: everything that was asked of an index together. `key` is a column whose values are 0
    to n-1, each once."""

    def __init__(self, tables: Mapping[str, pa.RecordBatch], key: str) -> None:
        self._tables, self._key = tables, key
        self._places = {name: np.argsort(np.asarray(rows.column(key))) for name, rows in tables.items()}
        self._coming: list[Answer] = []
        self.kept: dict[str, AnswersKept] = {}
        """All answers are kept for ever."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Answers are there."""
        together: dict[tuple[str, int], list[pa.RecordBatch]] = {}
        for request in requests:
            together.setdefault((request.table, request.method), []).append(request.keys)
        for (table, method), some in together.items():
            keys = pa.concat_batches(some)
            which = self._places[table][np.asarray(keys.column(self._key))]
            self._coming.append(Answer(table, method, keys, self._tables[table].take(pa.array(which))))

    def answers(self, wait: float) -> list[Answer]:
        """The answers to everything that was asked."""
        found, self._coming = self._coming, []
        return found

    def close(self) -> None:
        """Nothing comes any more."""
        self._coming.clear()

    @property
    def asked(self) -> int:
        """The number of answers to come."""
        return len(self._coming)
