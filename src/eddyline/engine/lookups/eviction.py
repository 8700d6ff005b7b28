"""Answers that are kept no longer (`ttl`, `cache_rows`): rows of a table, and the keys that they answer.

Answers are forgotten before a batch, in whole batches, the oldest first. So what is forgotten is one number for each
table: the batch before which its answers are gone. The keys are asked again when a tuple needs them, and the rows of
the new answers join only tuples that came after that (asked_again.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from eddyline.engine.lookups.answers import Answers, Known
from eddyline.engine.lookups.look_up import AnswersKept
from eddyline.engine.lookups.table import KnownTable
from eddyline.state.stem import SteM

_PARTS = 64
"""Answers are forgotten in about so many parts: each may stay longer by such a part of its time to live."""


def forget(
    known: Known,
    tables: Mapping[str, KnownTable],
    kept: Mapping[str, AnswersKept],
    now: float,
    batch: int,
    waits: bool,
    watermark: int | None,
    stems: Sequence[SteM],
) -> bool:
    """Before a batch: forget answers that are too old or too many, unless a row `waits` for one. Returns whether some
    are kept only because of that. `stems` are those of the sources; `now` is in seconds, `watermark` the query's."""
    by_table = {name: _in_parts([a for a in known.answers if a.table == name], kept[name]) for name in kept}
    gone = {name: _gone(mine, tables[name], kept[name], now, stems) for name, mine in by_table.items()}
    forgets = any(gone.values()) and not waits
    known.answers = [a for n, mine in by_table.items() for a in (mine[len(gone[n]) :] if forgets else mine)]
    if not forgets:
        return any(gone.values())
    for name, last in ((name, answers[-1]) for name, answers in gone.items() if answers):
        for source, rows in zip(tables[name].sources, last.rows, strict=True):
            stems[source].expire_before(rows)
        for index, keys in zip(tables[name].indexes.values(), last.keys, strict=True):
            index.answered.expire_before(keys)
        known.forgotten[name] = last.batch + 1
    known.marks.forget(batch, [stem.built for stem in stems], watermark)
    return False


def _in_parts(mine: Sequence[Answers], limits: AnswersKept) -> list[Answers]:
    """The answers of a table, of which those are taken together that came shortly one after the other."""
    found: list[Answers] = []
    for answers in mine:
        if len(found) > 1:
            before, last = found[-2:]
            is_short = limits.seconds is None or _PARTS * (last.came - before.came) < limits.seconds
            if is_short and (limits.rows is None or _PARTS * (sum(last.rows) - sum(before.rows)) < limits.rows):
                found.pop()
        found.append(answers)
    return found


def _gone(
    mine: Sequence[Answers], table: KnownTable, limits: AnswersKept, now: float, stems: Sequence[SteM]
) -> Sequence[Answers]:
    """The answers of a table that should be forgotten."""
    stored = sum(stems[source].rows.stored for source in table.sources)
    for number, answers in enumerate(mine):
        is_old = limits.seconds is not None and now - answers.came >= limits.seconds
        is_last = number == len(mine) - 1
        too_many = limits.rows is not None and not is_last and stored - sum(answers.rows) >= limits.rows
        if not is_old and not too_many:
            # With several indexes an answer may lack rows that another index had brought before.
            return mine if number and len(table.indexes) > 1 else mine[:number]
    return mine


def note_answers(known: Known, tables: Iterable[KnownTable], came: float, batch: int, stems: Sequence[SteM]) -> None:
    """The answers of these tables in a batch came until then: note where they end."""
    for table in tables:
        name, rows = table.stream.name, [stems[source].rows for source in table.sources]
        keys = [index.answered.rows for index in table.indexes.values()]
        last = next((answers for answers in reversed(known.answers) if answers.table == name), None)
        before = [some.min_live for some in (*rows, *keys)] if last is None else [*last.rows, *last.keys]
        if before != [some.stored for some in (*rows, *keys)]:
            ends = (tuple(some.stored for some in of) for of in (rows, keys))
            known.answers.append(Answers(name, batch, came, *ends))
