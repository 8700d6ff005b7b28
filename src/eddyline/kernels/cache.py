"""Where compiled kernels are kept: beside their source, or in the user's cache if that cannot be written to.

Numba compiles a kernel when it is first called, which takes seconds, and caches it there for later processes. If no
folder can be written to, kernels that are there are used all the same, and others are compiled in every process. This
module does not import Numba, so that a command can say that it is going to compile before it does.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent


def choose_folder() -> bool:
    """Set Numba's cache folder to a writable one, unless the user has set it, or the folder beside the source is one.
    Numba reads the setting when it is imported. Returns whether there is such a folder."""
    if (chosen := os.environ.get("NUMBA_CACHE_DIR")) is not None:
        return _writable(Path(chosen))
    if _writable(_HERE / "__pycache__"):
        return True
    cache = user_cache()
    if cache is None or not _writable(cache / "numba"):
        return False
    os.environ["NUMBA_CACHE_DIR"] = str(cache / "numba")
    return True


def folder() -> Path:
    """The folder with compiled kernels, or that which should have them."""
    return Path(os.environ.get("NUMBA_CACHE_DIR") or _HERE / "__pycache__")


def is_filled() -> bool:
    """Whether the cache already holds compiled kernels."""
    choose_folder()
    return any(folder().glob("**/*.nbc"))


def without_cache() -> tuple[str, str]:
    """What is wrong if there is no such folder, and what to do."""
    text = f"every run compiles the kernels, for half a minute, because {folder()} cannot be written"
    return text, "set NUMBA_CACHE_DIR to a folder that can"


def user_cache() -> Path | None:
    """Our folder in the cache of this user; None if the user has no home."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eddyline"
    except RuntimeError:
        return None


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it does not exist. The answer of the system to `access`
    would not tell of a disk that is read-only or full."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True
