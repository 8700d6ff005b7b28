"""The fault points of the package, found by reading its source: every `reach("name")`.

Each name occurs in one place, as a literal, so a test of a point is a test of that place.

>>> fault_points()["before publish"].split(":")[0]
'protocol/coordinator.py'
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import eddyline
from eddyline.errors import InternalError

SOURCE = Path(eddyline.__file__).parent


def fault_points(source: Path = SOURCE) -> dict[str, str]:
    """The file and line of each point, by its name; InternalError if a name occurs twice or is not a literal."""
    found: dict[str, str] = {}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for call in _calls(ast.parse(text)) if "reach(" in text else ():
            place = f"{path.relative_to(source)}:{call.lineno}"
            name = call.args[0].value if len(call.args) == 1 and isinstance(call.args[0], ast.Constant) else None
            if not isinstance(name, str):
                raise InternalError(f"{place}: the name of a fault point is a literal")
            if name in found:
                raise InternalError(f"{place}: there is a fault point '{name}' at {found[name]} already")
            found[name] = place
    return found


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reach":
            yield node
