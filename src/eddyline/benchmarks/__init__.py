"""Benchmarks, each measured beside its peers in one run, with a bar where there is one.

A benchmark NAME is a module `eddyline.benchmarks.NAME` with a function `run() -> list[Result]`; it is imported when
it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from eddyline.errors import SettingError


@dataclass(frozen=True)
class Result:
    """One measured value. `bar` is the value to reach or to stay below; `ok` is None where there is no bar."""

    case: str
    metric: str
    value: float
    unit: str
    bar: float | None = None
    ok: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def _module(name: str) -> Callable[[], list[Result]]:
    def run_module() -> list[Result]:
        results: list[Result] = import_module(f"eddyline.benchmarks.{name}").run()
        return results

    return run_module


NAMES = ("core", "memory", "start", "profile")
BENCHMARKS: dict[str, Callable[[], list[Result]]] = {name: _module(name) for name in NAMES}


def run(name: str) -> list[Result]:
    """Runs a benchmark; SettingError if there is none of that name."""
    if name not in BENCHMARKS:
        raise SettingError(f"there is no benchmark '{name}'; there is {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]()
