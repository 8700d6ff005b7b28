"""Benchmarks, each measured beside its peers in one run, with a bar where there is one.

A benchmark NAME is a module `eddyline.benchmarks.NAME` (`-` written `_`) with a function `run() -> list[Result]`; it is
imported when it is asked for. Its parameters, if it has any, are what may be chosen: `part`, `seed`, `seeds`. What it
says while it runs goes to the logger of its module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from inspect import signature
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


def _module(name: str) -> Callable[..., list[Result]]:
    def run_module(**chosen: Any) -> list[Result]:
        module = import_module(f"eddyline.benchmarks.{name.replace('-', '_')}")
        for option in chosen:
            if option not in signature(module.run).parameters:
                raise SettingError(f"--{option}: the benchmark {name} has nothing to choose there")
        results: list[Result] = module.run(**chosen)
        return results

    return run_module


NAMES = (
    "core",
    "memory",
    "start",
    "profile",
    "router",
    "packets",
    "optimizer",
    "plans",
    "qualified",
    "watching",
    "migration",
    "smooth",
    "adapt",
    "spark",
    "catch-up",
    "redis",
)
BENCHMARKS: dict[str, Callable[..., list[Result]]] = {name: _module(name) for name in NAMES}


def run(name: str, **chosen: Any) -> list[Result]:
    """Runs a benchmark; SettingError if there is none of that name, or nothing of that kind to choose in it."""
    if name not in BENCHMARKS:
        raise SettingError(f"there is no benchmark '{name}'; there is {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name](**chosen)
