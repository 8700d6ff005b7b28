"""The one place that says how kernels are compiled: cached on disk, without the GIL, without bounds checks.

Numba is imported once its cache has a folder (cache.py); the files in it are ours (compiled.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from eddyline.kernels.cache import choose_folder, is_filled

_F = TypeVar("_F", bound=Callable[..., Any])

_kept = choose_folder() or is_filled()
"""Whether compiled kernels are kept on disk, or at least found there."""
# Otherwise Numba, where colorama is installed, writes to the terminal when the process ends.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

import numba  # noqa: E402
import numpy as np  # noqa: E402
from llvmlite import ir  # noqa: E402
from numba.core.cgutils import get_or_insert_function  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from eddyline.kernels.compiled import CompiledFiles, use_read_only_folders  # noqa: E402

use_read_only_folders()


def kernel(function: _F) -> _F:
    """Compile a function on its first call with given argument types. Read-only arrays and arrays with gaps are types
    of their own: passing one compiles the function again, which takes seconds."""
    compiled: _F = numba.njit(cache=_kept, nogil=True, boundscheck=False)(function)
    return _cached(compiled)


def inlined(function: _F) -> _F:
    """A helper that disappears into the kernels that call it."""
    compiled: _F = numba.njit(cache=_kept, nogil=True, boundscheck=False, inline="always")(function)
    return _cached(compiled)


def _cached(compiled: _F) -> _F:
    if not _kept:
        return compiled
    cache: Any = compiled._cache  # type: ignore[attr-defined]
    cache._cache_file = CompiledFiles(
        cache.cache_path, cache._impl.filename_base, cache._impl.locator.get_source_stamp()
    )
    return compiled


at = np.uint64
"""The type of an index in a kernel. Numba tests every signed index for being negative, which may take longer than the
access itself. Arithmetic of this type with other integers gives floats in Numba: see `count`."""


@inlined
def count(index: np.uint64) -> int:
    """An index as a signed integer, to calculate with."""
    return np.int64(index)  # type: ignore[return-value]


@intrinsic  # type: ignore[untyped-decorator]
def fetch(typing: Any, array: Any, index: Any) -> Any:
    """`fetch(array, index)` in a kernel: prefetch an element that is needed soon. An index out of bounds is
    harmless."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
        to_call = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(to_call, [place, word(0), word(3), word(1)])  # for reading, high locality, data cache
        return context.get_dummy_value()

    return numba.void(array, index), code
