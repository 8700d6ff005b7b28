"""Compiled kernels on disk: found again by another process, and never taken for each other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eddyline.kernels import cache, jit
from eddyline.kernels.jit import kernel


def total(values: Any) -> Any:
    found = values[0]
    for i in range(1, values.size):
        found += values[i]
    return found


INTEGERS, FLOATS, EVERY_OTHER = np.arange(1, 9), np.arange(1.0, 9.0), np.arange(1, 17)[::2]


@pytest.fixture
def as_in_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Makes a kernel that knows only what is on disk."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    return lambda: kernel(total)


def compiled_and_found(dispatcher: Any) -> tuple[int, int]:
    return sum(dispatcher.stats.cache_misses.values()), sum(dispatcher.stats.cache_hits.values())


def test_what_one_process_compiled_another_finds(as_in_new_process: Callable[[], Any]) -> None:
    first, second = as_in_new_process(), as_in_new_process()
    assert (first(INTEGERS), second(FLOATS)) == (36, 36.0)
    third = as_in_new_process()
    assert (third(FLOATS), third(INTEGERS)) == (36.0, 36)
    assert compiled_and_found(third) == (0, 2)


def test_a_folder_that_cannot_be_written(as_in_new_process: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is found; the rest is compiled. Root may write everywhere, so here Numba's test write fails."""
    assert as_in_new_process()(INTEGERS) == 36

    def fails(locator: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", fails)
    dispatcher = as_in_new_process()
    assert (dispatcher(INTEGERS), dispatcher(FLOATS)) == (36, 36.0)
    assert compiled_and_found(dispatcher) == (1, 1)


def test_no_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setattr(cache, "_HERE", Path("/proc/nowhere"))
    assert not cache.choose_folder() and not cache.is_filled()
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user who has no home
    assert cache.user_cache() is None


def test_without_a_cache_kernels_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit, "_kept", False)
    assert kernel(total)(INTEGERS) == 36


def test_a_file_with_code_for_other_arguments_is_not_used(as_in_new_process: Callable[[], Any], tmp_path: Path) -> None:
    dispatcher = as_in_new_process()
    dispatcher(INTEGERS)
    (integers,) = tmp_path.rglob("*.nbc")
    dispatcher(EVERY_OTHER)
    (gaps,) = set(tmp_path.rglob("*.nbc")) - {integers}
    shutil.copy(integers, gaps)
    again = as_in_new_process()
    assert (again(INTEGERS), again(EVERY_OTHER)) == (36, 64)
    assert compiled_and_found(again) == (1, 1)
