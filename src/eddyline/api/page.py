"""The page docs/python-api.md, generated from the signatures and docstrings of what programs use."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import eddyline as el
from eddyline import errors
from eddyline.api.query import Query
from eddyline.api.run import Run
from eddyline.engine.groups.online import RunningEstimate
from eddyline.runtime.reporting.summary import Progress, Summary

_HEAD = """# Python API

This page is for people who write programs with Eddyline.
It lists every function and class that a program uses; [From Python](python.md) explains them by examples.
It is written from the docstrings by `python -m eddyline.api.page`, so `help(el.query)` says the same; a test fails when
it is old.

```py
import eddyline as el
```
"""
_WIDTH = 88
_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def page() -> str:
    """The page as Markdown."""
    raised = errors.EddylineError, errors.ScriptError, errors.SettingError, errors.JobError, errors.InternalError
    parts = [
        _HEAD.rstrip("\n"),
        "## Make a query",
        *(part for one in (el.query, el.stream, el.udf) for part in _function(f"el.{one.__name__}", one, "###")),
        "## Start it",
        *_class(Query, ("start", "explain")),
        "## The run",
        *_class(Run),
        "## Numbers of a run",
        *(part for one in (Progress, Summary, RunningEstimate) for part in _class(one)),
        "## Errors",
        *(part for one in raised for part in _class(one)),
    ]
    return "\n\n".join(parts) + "\n"


def _class(cls: type, members: tuple[str, ...] = ()) -> Iterator[str]:
    """What a class is for, its fields, its methods and properties: the public ones, or only the named `members`."""
    yield f"### {cls.__name__}"
    yield _text(cls)
    rows = "".join(f"| `{name}` | `{kind}` | {text} |\n" for name, kind, text in _fields(cls))
    if rows:
        yield f"| field | type | meaning |\n| --- | --- | --- |\n{rows}".rstrip("\n")
    for name, member in vars(cls).items():
        if name in members if members else not name.startswith("_"):
            if isinstance(member, property):
                kind = member.fget.__annotations__["return"]
                yield f"#### {cls.__name__}.{name}"
                yield f"```py\n{name}: {kind}\n```"
                yield _text(member)
            elif inspect.isfunction(member):
                yield from _function(f"{cls.__name__}.{name}", member, "####")


def _fields(cls: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of the fields of a dataclass; the meaning is the text below the field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = " ".join(str(after.value.value).split())
            yield node.target.id, ast.unparse(node.annotation).replace("|", "\\|"), text.replace("|", "\\|")


def _function(name: str, function: Callable[..., Any], heading: str) -> Iterator[str]:
    yield f"{heading} {name}"
    yield f"```py\n{_signature(name, function)}\n```"
    yield _text(function)


def _signature(name: str, function: Callable[..., Any]) -> str:
    """The call as it is written, in a line for each parameter where one line is too long."""
    known = inspect.signature(function)
    given = list[str]()
    for one in known.parameters.values():
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and "*" not in given:
            given.append("*")
        default = "" if one.default is one.empty else f" = {one.default!r}"
        given.append(f"{one.name}: {one.annotation}{default}")
    result = f" -> {known.return_annotation}"
    line = f"{name}({', '.join(given)}){result}"
    return line if len(line) <= _WIDTH else "\n".join([f"{name}(", *(f"    {one}," for one in given), f"){result}"])


def _text(described: object) -> str:
    """A docstring as Markdown: its examples become blocks of code."""
    return _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", inspect.getdoc(described) or "")


if __name__ == "__main__":
    sys.stdout.write(page())
