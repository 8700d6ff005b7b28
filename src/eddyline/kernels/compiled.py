"""The files of one compiled kernel. Processes that compile it at the same time do not disturb each other.

Numba's own files are numbered, and an index says which number has which types of arguments. Two processes that compile
the same function for different types take the same number, and one of them leaves an index that names the other's code.
A later process then runs code for other arguments: it crashes, does not end, or computes something wrong. Here the
types name the file, and it says itself what it holds.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import Any

from numba.core import caching
from numba.core.caching import IndexDataCacheFile


class CompiledFiles(IndexDataCacheFile):  # type: ignore[misc]
    """In place of the files of Numba's cache, for one kernel. There is no index."""

    def save(self, key: Any, data: Any) -> None:
        """Keep code for these types of arguments and this processor; the file is replaced as a whole."""
        with contextlib.suppress(OSError):  # the next process compiles it again
            self._save_data(self._file(key), (self._origin(key), data))

    def load(self, key: Any) -> Any:
        """That code, or None if there is none or if it is of another version of the kernel or of Numba."""
        try:
            origin, data = self._load_data(self._file(key))
        except OSError:
            return None
        return data if origin == self._origin(key) else None

    def _origin(self, key: Any) -> tuple[Any, ...]:
        return self._version, self._source_stamp, key

    def _file(self, key: Any) -> str:
        types, processor, _ = key
        digest = hashlib.sha256(repr((types, processor)).encode()).digest()
        name: str = self._data_name(int.from_bytes(digest[:8], "big"))
        return name


def use_read_only_folders() -> None:
    """Let Numba take a kernel's folder even if it cannot write there; it would refuse to compile. Files that are there
    are used, `save` does nothing."""
    caching.CompileResultCacheImpl._locator_classes = [
        *caching.CompileResultCacheImpl._locator_classes,
        _InCacheFolder,
        _BesideSource,
    ]


class _InCacheFolder(caching.UserProvidedCacheLocator):  # type: ignore[misc]
    def ensure_cache_path(self) -> None:
        """The folder need not be writable."""


class _BesideSource(caching.InTreeCacheLocator):  # type: ignore[misc]
    def ensure_cache_path(self) -> None:
        """The folder need not be writable."""
