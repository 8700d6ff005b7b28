"""Imports point downwards and in no circle, only `spark/` imports pyspark, and the name of a type means one thing.

The order of the layers is that of ARCHITECTURE.md. A file may import files of its own layer and of the layers below,
not of a layer of the same height. No two files import each other, directly or through others. Imports inside functions
and imports for types count like all others.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "eddyline"
LAYERS = (
    ("cli",),
    ("testing",),
    ("api",),
    ("dashboard",),
    ("spark",),
    ("runtime",),
    ("protocol",),
    ("engine",),
    ("optimizer",),
    ("migration", "balance"),
    ("spill",),
    ("routing",),
    ("plan",),
    ("state",),
    ("kernels",),
    ("bound",),
    ("cql",),
    ("settings", "os_errors"),
    ("setting_kinds",),
    ("errors", "faults", "counts", "codec", "version", "extras", "running_time"),
    ("printable",),
)
"""From the top; names on one line have the same height."""
BESIDE_THE_PRODUCT = ("testing",)
"""Layers whose names of types are their own affair."""
HEIGHT = {name: -height for height, names in enumerate(LAYERS) for name in names}
MODULES = {".".join(path.relative_to(SOURCE.parent).with_suffix("").parts): path for path in SOURCE.rglob("*.py")}
"""Every file of the package by its dotted name; a folder's `__init__.py` has the folder's name."""
MODULES = {name.removesuffix(".__init__"): path for name, path in sorted(MODULES.items())}


@cache
def imports(name: str) -> tuple[tuple[int, str], ...]:
    """The line and the dotted name of everything that a file imports."""
    return tuple(_imports(MODULES[name]))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def layer_of(name: str) -> str:
    """The layer of a dotted name: its second part. The package itself is of no layer."""
    return [*name.split("."), ""][1]


def file_of(name: str) -> str:
    """The file that an imported name is of: itself, or the file that defines it."""
    return name if name in MODULES else name.rpartition(".")[0]


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one node (Tarjan's algorithm)."""
    found, stack = set[frozenset[str]](), list[str]()
    number, lowest = dict[str, int](), dict[str, int]()

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in number:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], number[other])
        if lowest[node] == number[node]:
            first = stack.index(node)
            if len(stack) - first > 1:
                found.add(frozenset(stack[first:]))
            del stack[first:]

    for node in graph:
        if node not in number:
            visit(node)
    return found


def test_every_layer_has_a_height() -> None:
    assert {layer_of(name) for name in MODULES} - {""} <= set(HEIGHT)


@pytest.mark.parametrize("layer", HEIGHT)
def test_imports_point_downwards(layer: str) -> None:
    for name in MODULES:
        if layer_of(name) != layer:
            continue
        for line, imported in imports(name):
            place = f"{MODULES[name]}:{line}"
            assert imported.split(".")[0] not in ("lab", "tests"), f"{place}: the package does not know the laboratory"
            if imported.split(".")[0] == "pyspark":
                assert layer == "spark", f"{place}: only spark/ imports pyspark"
            other = layer_of(imported)
            if imported.split(".")[0] != "eddyline" or other not in HEIGHT or other == layer:
                continue
            assert HEIGHT[other] < HEIGHT[layer], f"{place}: {layer} must not import {other}, which is not below it"


def test_no_circle_of_files() -> None:
    graph = {name: {file_of(imported) for _, imported in imports(name)} & set(MODULES) for name in MODULES}
    assert [sorted(circle) for circle in circles(graph)] == []


def test_the_name_of_a_type_means_one_thing() -> None:
    """A reader who finds a class or the alias of a type knows which one it is. An underscore makes no other name of it.
    An alias may be there twice if it stands for the same type."""
    meanings = defaultdict[str, set[str]](set)
    for name, path in MODULES.items():
        if layer_of(name) in BESIDE_THE_PRODUCT:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                meanings[node.name.lstrip("_")].add(f"{path}:{node.lineno}")
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                alias = node.targets[0].id.lstrip("_")
                if alias[:1].isupper() and not alias.isupper():
                    meanings[alias].add(ast.unparse(node.value))
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": set[str](), "f": {"g"}, "g": {"f", "a"}}
    assert circles(graph) == {frozenset("abc"), frozenset("fg")}
