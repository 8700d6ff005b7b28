"""Benchmarks. Each measures its sides in one run; a result may have a bar that it must reach.

A benchmark NAME is a module `lab.bench.NAME` (`-` written `_`; `peers` is `lab.peers`) with a function
`run() -> list[Result]`; it is imported when it is run. The parameters of `run`, if any, are the choices of the user:
`part`, `seed`, `seeds`, `against`, `minutes`, `runs`, `out`, and those of `peers`. Messages about its progress go to
the logger of its module.
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
    """One measured value. `bar` is the value to reach or to stay below; `ok` is None without a bar."""

    case: str
    metric: str
    value: float
    unit: str
    bar: float | None = None
    ok: bool | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result as a dictionary for JSON."""
        return asdict(self)


def _module(name: str) -> Callable[..., list[Result]]:
    def run_module(**chosen: Any) -> list[Result]:
        module = import_module("lab.peers" if name == "peers" else f"lab.bench.{name.replace('-', '_')}")
        for option in chosen:
            if option not in signature(module.run).parameters:
                raise SettingError(f"--{option}: the benchmark {name} has nothing to choose there")
        results: list[Result] = module.run(**chosen)
        return results

    return run_module


NAMES = (
    "core",
    "memory",
    "spill",
    "spill-policies",
    "start",
    "profile",
    "router",
    "packets",
    "optimizer",
    "plans",
    "qualified",
    "watching",
    "demo",
    "recording",
    "migration",
    "smooth",
    "adapt",
    "spark",
    "catch-up",
    "redis",
    "nexmark",
    "kafka",
    "kafka-lag",
    "batches",
    "lookups",
    "builds",
    "aliases",
    "balance",
    "balance-sim",
    "skew",
    "opening",
    "soak",
    "peers",
)
BENCHMARKS: dict[str, Callable[..., list[Result]]] = {name: _module(name) for name in NAMES}


def run(name: str, **chosen: Any) -> list[Result]:
    """Run a benchmark; SettingError if there is no such benchmark, or it has no such choice."""
    if name not in BENCHMARKS:
        raise SettingError(f"there is no benchmark '{name}'; there is {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name](**chosen)
