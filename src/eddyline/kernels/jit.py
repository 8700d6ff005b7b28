"""The one place that says how kernels are compiled: cached on disk, without the GIL, without bounds checks.

Numba is imported here only; a cache folder of the user's own is named before that if the package's cannot be written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])

if "NUMBA_CACHE_DIR" not in os.environ and not os.access(Path(__file__).parent, os.W_OK):
    os.environ["NUMBA_CACHE_DIR"] = str(
        Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eddyline" / "numba"
    )

import numba  # noqa: E402


def kernel(function: _F) -> _F:
    """Compile on first use for the types it is given."""
    compiled: _F = numba.njit(cache=True, nogil=True, boundscheck=False)(function)
    return compiled


def inlined(function: _F) -> _F:
    """A helper that disappears into the kernels that call it."""
    compiled: _F = numba.njit(cache=True, nogil=True, boundscheck=False, inline="always")(function)
    return compiled
