"""Imports point downwards only, and only `spark/` knows pyspark.

The order is that of ARCHITECTURE.md. A module may import what is of its own height or below; `import` statements
inside functions count too, since they run in the end.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "eddyline"
LAYERS = (
    ("cli", "benchmarks", "experiments"),
    ("testing",),
    ("api",),
    ("spark",),
    ("runtime",),
    ("protocol",),
    ("engine",),
    ("migration", "optimizer"),
    ("routing",),
    ("plan",),
    ("state",),
    ("kernels",),
    ("query",),
    ("cql",),
    ("settings", "errors", "faults"),
)
"""From the top; names on one line are of one height."""
HEIGHT = {name: -height for height, names in enumerate(LAYERS) for name in names}
MODULES = sorted(SOURCE.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the full name of everything that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def layer_of(path: Path) -> str:
    """The folder (or file) right below `eddyline` that a module is in."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_layer_has_a_height() -> None:
    assert {layer_of(path) for path in MODULES} - {"__init__"} <= set(HEIGHT)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_downwards(path: Path) -> None:
    mine = layer_of(path)
    for line, name in imports(path):
        parts = name.split(".")
        if parts[0] == "pyspark":
            assert mine == "spark", f"{path}:{line}: only spark/ imports pyspark"
        if parts[0] != "eddyline" or mine == "__init__":
            continue
        theirs = parts[1] if len(parts) > 1 else "__init__"
        if theirs not in HEIGHT:
            continue
        below = HEIGHT[theirs] <= HEIGHT[mine]
        assert below, f"{path}:{line}: {mine} must not import {theirs}, which is not below it"
