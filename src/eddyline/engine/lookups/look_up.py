"""What a slot and the access modules of its tables say to each other: requests, and answers that come later.

A slot has no I/O: it says which keys it wants, and gets answers as rows that arrive. Whoever runs the slot passes
requests on (`Lookups`), at most once for each key and time to live, and feeds the answers in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True)
class Request:
    """Ask a table for all rows with some keys, or for all rows."""

    table: str
    method: int
    """The access method: its place in `BoundStream.methods`."""
    keys: pa.RecordBatch
    """The columns of the method, of the table's own types. Each key is there once; no value is NULL. For a scan: no
    column and no row."""
    rank: int = 0
    """Keys of a larger rank go first. Above 0 some keys may be asked already: they move forward in their line."""
    takes_back: bool = False
    """Take back what was asked of this index and is not begun. It may be answered all the same. There is no key."""


@dataclass(frozen=True)
class DeadRows:
    """Rows of a table with a value that cannot be read."""

    rows: pa.RecordBatch
    """The rows; such a value is NULL."""
    texts: pa.RecordBatch
    """The same rows as text, with the values that the table holds."""
    reasons: pa.Array

    def having(self, keep: NDArray[np.bool_]) -> DeadRows | None:
        """Those of the rows that the mask keeps; None if it keeps none."""
        mask = pa.array(keep)
        if not mask.true_count:
            return None
        return DeadRows(self.rows.filter(mask), self.texts.filter(mask), self.reasons.filter(mask))


@dataclass(frozen=True)
class Answer:
    """All rows of a table that have some keys; or a part of a scan; or why there is no answer."""

    table: str
    method: int
    keys: pa.RecordBatch
    """The keys that are answered completely, now (in the paper: an EOT tuple for each of them), or not at all."""
    rows: pa.RecordBatch
    """The rows of all these keys, in any order, with the columns of the table that the query uses."""
    is_last: bool = True
    """False for a part of a scan after which more comes."""
    error: str | None = None
    """Why the lookup of all these keys has failed for good. Then there is no row."""
    is_withdrawn: bool = False
    """Whether these keys were taken back, and were not looked up. Then there is no row."""
    dead: DeadRows | None = None
    """The rows that cannot be read. They are not among `rows`."""


class Outgoing:
    """Requests of a slot on their way. While nobody passes them on they are kept."""

    def __init__(self) -> None:
        self._kept: list[Request] = []
        self._ask: Callable[[Sequence[Request]], None] = self._kept.extend

    def send(self, requests: Iterable[Request]) -> None:
        """Ask, at once if somebody passes requests on."""
        self._ask([*requests])

    @contextmanager
    def through(self, ask: Callable[[Sequence[Request]], None]) -> Iterator[None]:
        """Until the end of the context `ask` gets all requests, those that were kept first."""
        kept = self._kept.copy()
        self.clear()
        ask(kept)
        self._ask = ask
        try:
            yield
        finally:
            self._ask = self._kept.extend

    def clear(self) -> None:
        """Drop the requests that are kept."""
        self._kept.clear()


@dataclass(frozen=True)
class AnswersKept:
    """How long, and how many of, the answers of a table are kept. After that a key is asked again."""

    seconds: float | None = None
    rows: int | None = None


class LookingUp(Protocol):
    """The part of a slot that asks."""

    def forget_answers(self, kept: Mapping[str, AnswersKept], now: float) -> bool:
        """Before a batch: forget answers that are kept no longer, by table. `now` is in seconds. Returns whether some
        are kept only because rows wait for others."""
        ...

    def process(self, query_watermark: int | None, ask: Callable[[Sequence[Request]], None]) -> None:
        """Join what was received or answered so far. `ask` gets what the tables are asked as a result, at once: they
        answer while the slot goes on."""
        ...

    def answer(self, answers: Sequence[Answer]) -> None:
        """Take answers, for `process`."""
        ...

    def note_answers(self, now: float) -> None:
        """After the last answers of a batch, which came until now."""
        ...

    @property
    def patience(self) -> float:
        """How many seconds the slot may wait for answers before `process` asks other access methods."""
        ...


class Lookups(Protocol):
    """Asks the access modules of tables, without making the slot wait."""

    def ask(self, requests: Sequence[Request]) -> None:
        """Begin to ask; returns at once."""
        ...

    def answers(self, wait: float) -> list[Answer]:
        """The answers that have come since the last call. If there is none yet, wait for one, at most `wait` seconds;
        return at once if nothing is asked."""
        ...

    @property
    def kept(self) -> Mapping[str, AnswersKept]:
        """How long the answers of tables are kept; nothing is told of tables whose answers are kept for ever."""
        ...

    def close(self) -> None:
        """Stop; what was asked is not answered."""
        ...

    @property
    def asked(self) -> int:
        """The number of keys that are asked and not answered, and of scans that have not ended."""
        ...


def look_up(
    slot: LookingUp,
    lookups: Lookups,
    watermark: int | None,
    until: float,
    clock: Callable[[], float],
    age: Callable[[], float],
    most: int = 0,
) -> None:
    """Join what a slot has received, ask for what it lacks, and join the answers, until at most `most` keys are asked
    or the time `until`. What is not answered by then stays asked: the answers come in a later call. Where answers
    should be forgotten, all are waited for: nothing is forgotten while rows wait. `age` is the clock by which answers
    grow old; with a checkpoint it is the same in all processes."""
    if slot.forget_answers(lookups.kept, age()):
        until, most = inf, 0
    slot.answer(lookups.answers(0.0))
    while True:
        slot.process(watermark, lookups.ask)
        left = max(0.0, until - clock()) if lookups.asked > most else 0.0
        answers = lookups.answers(min(left, slot.patience))
        if not answers and left <= slot.patience:
            break
        slot.answer(answers)
    slot.note_answers(age())
