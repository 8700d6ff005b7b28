"""Clients of access modules, asked by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eddyline.cql.declaration import Declaration
from eddyline.cql.places import Place
from eddyline.engine.lookups.look_up import Answer, Request
from eddyline.runtime.access.asking import Asking
from eddyline.runtime.access.client import AccessClient
from eddyline.runtime.access.tables import AccessTable, open_table

NO_KEYS = pa.RecordBatch.from_arrays([], schema=pa.schema([]))


def declared(format_: str, schema: pa.Schema, **options: object) -> AccessTable:
    """The table `t`."""
    written = {key: str(value) for key, value in options.items()}
    return open_table(Declaration("TABLE", "t", None, format_, written, None, 0, None, None, Place(1, 1)), schema)


def looked_up(opened: Callable[[], AccessClient], keys: pa.RecordBatch, *columns: str) -> list[dict[str, Any]]:
    """The rows of one lookup, in order."""

    async def course() -> pa.RecordBatch:
        client = opened()
        try:
            return (await client.lookup(columns, keys)).rows
        finally:
            await client.close()

    found = asyncio.run(course())
    assert found.schema.names == list(columns)
    return sorted(found.to_pylist(), key=repr)


def unreadable_by_scan(opened: Callable[[], AccessClient], *columns: str) -> list[str]:
    """Why rows of a scan are dead."""

    async def course() -> list[str]:
        client = opened()
        try:
            dead = [part.dead async for part in client.scan(columns)]
        finally:
            await client.close()
        return [reason for rows in dead if rows is not None for reason in rows.reasons.to_pylist()]

    return asyncio.run(course())


def scanned(opened: Callable[[], AccessClient], *columns: str) -> list[pa.RecordBatch]:
    """The parts of a scan."""

    async def course() -> list[pa.RecordBatch]:
        client = opened()
        try:
            return [part.rows async for part in client.scan(columns)]
        finally:
            await client.close()

    return asyncio.run(course())


def all_answers(table: AccessTable, *requests: pa.RecordBatch, columns: Sequence[str] = ()) -> list[Answer]:
    """Everything that is answered to requests for keys; a scan has no keys."""
    with Asking({"t": replace(table, columns=tuple(columns)) if columns else table}) as asking:
        asking.ask([Request("t", method, keys) for method, keys in enumerate(requests)])
        found: list[Answer] = []
        for _ in range(1000):
            found += asking.answers(1.0)
            if not asking.asked:
                return found
    raise AssertionError("no end of answers")


def unreadable(answers: Sequence[Answer]) -> list[str]:
    """Why rows of answers are dead."""
    return [reason for a in answers if a.dead is not None for reason in a.dead.reasons.to_pylist()]


def failures(answers: Sequence[Answer]) -> dict[Any, str]:
    """The reasons for keys of one column that failed."""
    return {key: a.error for a in answers if a.error for key in a.keys.column(0).to_pylist()}
