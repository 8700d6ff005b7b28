"""Eddyline: an adaptive continuous query engine. SQL over streams, re-planned while the data drifts.

>>> import eddyline as el
>>> el.__version__
'0.1.0'

`el.query` runs a query from Python, `el.stream` makes a stream of record batches, `el.udf` registers a function for
queries, `el.errors` has what they raise. Everything is imported when it is first used, so that `import eddyline` is
quick.
"""

from __future__ import annotations

import types
from importlib import import_module
from typing import TYPE_CHECKING, Any

import eddyline.query as _query_package

if TYPE_CHECKING:
    from eddyline import errors as errors
    from eddyline.api import query as query
    from eddyline.api import stream as stream
    from eddyline.query.udf import udf as udf

__version__ = "0.1.0"
__all__ = ["errors", "query", "stream", "udf"]

_PLACES = {"stream": "eddyline.api", "udf": "eddyline.query.udf"}


class _QueryPackage(types.ModuleType):
    """`eddyline.query` is both the package with what was asked and the function that asks: calling it is
    `api.query`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return import_module("eddyline.api").query(*args, **kwargs)


_query_package.__class__ = _QueryPackage


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("eddyline.errors")
    if name in _PLACES:
        return getattr(import_module(_PLACES[name]), name)
    raise AttributeError(f"module 'eddyline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
