"""Where compiled kernels are kept: beside their source, or in the user's cache if that cannot be written to.

Numba compiles a kernel when it is first called, which takes seconds, and caches it there for later processes. This
module does not import Numba, so that a command can say that it is going to compile before it does.
"""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent


def choose_folder() -> None:
    """Set Numba's cache folder to a writable one, unless the user has set it. Numba reads the setting when it is
    imported."""
    if "NUMBA_CACHE_DIR" not in os.environ and not os.access(_HERE, os.W_OK):
        cache = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
        os.environ["NUMBA_CACHE_DIR"] = str(Path(cache) / "eddyline" / "numba")


def is_filled() -> bool:
    """Whether the cache already holds compiled kernels."""
    choose_folder()
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder is None:
        return any((_HERE / "__pycache__").glob("*.nbc"))
    return any(Path(folder).glob("**/*.nbc"))
