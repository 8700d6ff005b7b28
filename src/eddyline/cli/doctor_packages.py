"""What `eddyline doctor` says about Python: its version, the packages, the extras and the compiled kernels.

The ranges of versions are those that the installed package declares (pyproject.toml). This file imports only the
standard library, because any package may be missing. Packages are imported in another process, so a package that
crashes does not end the doctor.
"""

from __future__ import annotations

import operator
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import zip_longest
from pathlib import Path

import eddyline
from eddyline.cli.finding import Finding
from eddyline.extras import install
from eddyline.kernels.cache import choose_folder, folder, is_filled, without_cache

_MODULES = ("numpy", "numba", "pyarrow", "sqlglot", "msgspec", "rich")
_PURPOSES = {
    "dashboard": "the dashboard in a browser",
    "delta": "Delta tables as sinks",
    "duckdb": "DuckDB tables that are asked",
    "http": "HTTP services that are asked",
    "iceberg": "Iceberg tables as sinks",
    "kafka": "Kafka topics as streams and sinks",
    "pandas": "run.to_pandas()",
    "plots": "charts: run.plot_routes(), the demo, experiments",
    "polars": "run.to_polars()",
    "postgres": "PostgreSQL tables that are asked, and as sinks",
    "redis": "Redis tables that are asked, and streams",
    "spark": "the engine spark",
}
"""What each extra is for; extras for developers are not here."""
_COMPARE = {">=": operator.ge, "<": operator.lt, "<=": operator.le, ">": operator.gt, "==": operator.eq}
_PATIENCE = 60


@dataclass(frozen=True)
class Requirement:
    """A package that Eddyline declares, the range of its versions, and the extra that it belongs to ("": none)."""

    package: str
    versions: str
    extra: str = ""

    @property
    def found(self) -> str | None:
        """The installed version; None if there is none."""
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None

    def fits(self, version: str) -> bool:
        """Whether a version is in the range; parts of the range that are written in another way do not count.

        >>> Requirement("numpy", "<3,>=2.2").fits("2.10.1"), Requirement("numpy", "<3,>=2.2").fits("3.0")
        (True, False)
        """
        for sign, limit in re.findall(r"(>=|<=|==|<|>)\s*([0-9.]+)", self.versions):
            pairs = list(zip_longest(_numbers(version), _numbers(limit), fillvalue=0))
            if not _COMPARE[sign]([a for a, _ in pairs], [b for _, b in pairs]):
                return False
        return True


def _numbers(version: str) -> list[int]:
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return [] if found is None else [int(number) for number in found[0].split(".")]


def requirements() -> list[Requirement]:
    """All packages that the installed Eddyline declares; none if it runs from a folder without being installed."""
    try:
        lines = metadata.requires("eddyline") or []
    except metadata.PackageNotFoundError:
        return []
    return [r for line in lines if (r := read(line)).package != "eddyline"]


def read(line: str) -> Requirement:
    """A line of a package's metadata.

    >>> read('pyspark<4.4,>=4.3; extra == "spark"')
    Requirement(package='pyspark', versions='<4.4,>=4.3', extra='spark')
    """
    what, _, condition = line.partition(";")
    found, extra = (
        re.match(r"\s*([\w.-]+)\s*(?:\[[^]]*\])?\s*(.*)", what),
        re.search(r"extra == ['\"](.*)['\"]", condition),
    )
    assert found is not None
    return Requirement(found[1], found[2].strip(" ()"), "" if extra is None else extra[1])


def python() -> Iterator[Finding]:
    """Python itself, and where Eddyline is."""
    place = Path(eddyline.__file__).parent
    yield Finding("eddyline", "ok", f"{eddyline.__version__} in {place}")
    version = ".".join(map(str, sys.version_info[:3]))
    state, todo = ("ok", "") if sys.version_info >= (3, 11) else ("wrong", "Eddyline needs Python 3.11 or newer")
    if not sys.platform.startswith("linux"):
        state, todo = "warn", f"Eddyline is tested on Linux, not on {sys.platform}"
    yield Finding("Python", state, f"{version} ({sys.executable})", todo)  # type: ignore[arg-type]


def packages() -> Iterator[Finding]:
    """The packages that every job needs: a line for each that is wrong, or one line for all."""
    declared = [r for r in requirements() if not r.extra]
    if not declared:
        text = "Eddyline runs from a folder without being installed, so its versions of packages are not known"
        yield Finding("packages", "warn", text, "pip install eddyline")
    good = []
    for one in declared:
        wrong = _of_package(one)
        if wrong is None:
            good.append(f"{one.package} {one.found}")
        else:
            yield wrong
    if good:
        yield Finding("packages", "ok", ", ".join(good))


def _of_package(one: Requirement) -> Finding | None:
    found, todo = one.found, f"pip install '{one.package}{one.versions}'"
    if found is None:
        return Finding(one.package, "missing", "not installed", todo)
    return None if one.fits(found) else Finding(one.package, "wrong", f"{found} is not {one.versions}", todo)


def loading() -> Iterator[Finding]:
    """Whether the packages can be loaded: a package for another machine or with a broken library is also installed."""
    code = f"import {', '.join(_MODULES)}"
    try:
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        yield Finding("imports", "warn", f"the packages are not loaded after {_PATIENCE} seconds")
        return
    said = done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"]
    if done.returncode == 0:
        yield Finding("imports", "ok", f"{', '.join(_MODULES)} can be loaded")
    else:
        yield Finding("imports", "wrong", said[-1], "pip install --force-reinstall eddyline")


def kernels() -> Iterator[Finding]:
    """Whether the kernels are compiled, and where they are kept."""
    kept = choose_folder()
    if is_filled():
        yield Finding("kernels", "ok", f"compiled ({folder()})")
    elif kept:
        yield Finding("kernels", "ok", "not compiled yet: the first run does that, which takes half a minute")
    else:
        yield Finding("kernels", "warn", *without_cache())


def extras() -> Iterator[Finding]:
    """A line for each extra that a user may want, except Spark's."""
    declared = requirements()
    for extra, purpose in _PURPOSES.items():
        parts = [r for r in declared if r.extra == extra]
        if extra == "spark" or not parts:
            continue
        wrong = [f for r in parts if (f := _of_package(r)) is not None]
        if not wrong:
            yield Finding(extra, "ok", f"{', '.join(f'{r.package} {r.found}' for r in parts)}: {purpose}")
        else:
            text = ", ".join(f"{f.name} {f.text}" if f.state == "wrong" else f"no {f.name}" for f in wrong)
            yield Finding(extra, "optional", f"{text}: {purpose}", install(extra))
