"""Eddyline: an adaptive continuous query engine. SQL over streams, re-planned while the data drifts.

>>> import eddyline as el
>>> el.__version__
'0.1.0'

`el.query` runs a query from Python, `el.stream` makes a stream of record batches, `el.udf` registers a function for
queries, `el.errors` has what they raise. Everything is imported when it is first used, so that `import eddyline` is
quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eddyline.version import __version__ as __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eddyline import errors as errors
    from eddyline.api import Query, Stream
    from eddyline.api import stream as stream
    from eddyline.bound.udf import udf as udf
    from eddyline.runtime.sources.batches import Batches

__all__ = ["errors", "query", "stream", "udf"]

_PLACES = {"stream": "eddyline.api", "udf": "eddyline.bound.udf"}


def query(
    sql: str,
    streams: Mapping[str, Stream] | None = None,
    tables: Mapping[str, Batches] | None = None,
    prefer: str | None = None,
) -> Query:
    """A query over streams and tables from Python, or a whole script with declarations of its own.

    `streams` are made by `el.stream`; `tables` are read whole. Nothing is read before `start`, which gives a run.
    Rows that satisfy `prefer`, a condition over one stream or table, come first.

    >>> import datetime, pyarrow as pa, eddyline as el
    >>> def batch(key, *seconds):
    ...     times = [datetime.datetime(2026, 1, 1, 0, 0, s) for s in seconds]
    ...     return pa.record_batch({"ts": times, key: [s % 10 for s in seconds]})
    >>> orders = el.stream([batch("id", 1, 2, 13)], time="ts")
    >>> payments = el.stream([batch("order_id", 3, 33)], time="ts")
    >>> rows = []
    >>> run = el.query(
    ...     "SELECT o.id FROM orders [RANGE 15 SECONDS] o, payments [RANGE 15 SECONDS] p WHERE o.id = p.order_id",
    ...     streams={"orders": orders, "payments": payments},
    ... ).start(sink=lambda result: rows.extend(result.to_pylist()))
    >>> run.wait().rows_out, rows
    (1, [{'id': 3}])
    """
    from eddyline.api import Query

    return Query(sql, streams or {}, tables or {}, prefer)


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("eddyline.errors")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'eddyline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
