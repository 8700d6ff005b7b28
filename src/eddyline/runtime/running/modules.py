"""Imports modules with user functions, given by name or by path, into a process that runs a part of the job.

A file is imported as a module with the file's name, from the text that it had when the job was started. So a worker on
another host, which does not have the file, has the same functions. If the file's folder exists there, the modules
beside the file are found.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

_TEXTS: dict[str, str] = {}
"""By path, the text that was imported here."""


def is_path(module: str) -> bool:
    """Whether a module is named by its path.

    >>> is_path("functions.py"), is_path("package.functions")
    (True, False)
    """
    return module.endswith(".py") or os.sep in module


def texts(modules: Sequence[str]) -> dict[str, str]:
    """The texts of the files among modules, by path."""
    paths = [Path(module).with_suffix(".py").resolve() for module in modules if is_path(module)]
    return {str(path): path.read_text(encoding="utf-8") for path in paths}


def import_all(names: Sequence[str], files: Mapping[str, str]) -> None:
    """Imports modules by name, and files by path and text, unless they are already imported."""
    for path, text in files.items():
        _import(Path(path), text)
    for name in names:
        importlib.import_module(name)


def _import(path: Path, text: str) -> None:
    known = sys.modules.get(path.stem)
    there = known is not None and known.__file__ is not None and Path(known.__file__).resolve() == path
    if there and _TEXTS.setdefault(str(path), text) == text:
        return
    if path.parent.is_dir() and str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    sys.modules[path.stem] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    _TEXTS[str(path)] = text
