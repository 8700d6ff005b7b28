"""Where compiled kernels are kept: beside their source, or in the user's cache if that cannot be written to.

Numba compiles a kernel when it is first called, for seconds, and keeps it there for all later processes. Nothing here
imports Numba, so that a command can say beforehand that it will compile.
"""

from __future__ import annotations

import os
from pathlib import Path

_HERE = Path(__file__).parent


def choose_folder() -> None:
    """Names a folder that can be written to, unless one is named already. Numba reads the name when it is imported."""
    if "NUMBA_CACHE_DIR" not in os.environ and not os.access(_HERE, os.W_OK):
        cache = os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")
        os.environ["NUMBA_CACHE_DIR"] = str(Path(cache) / "eddyline" / "numba")


def is_filled() -> bool:
    """Whether kernels were compiled before."""
    choose_folder()
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if folder is None:
        return any((_HERE / "__pycache__").glob("*.nbi"))
    return any(Path(folder).glob("**/*.nbi"))
