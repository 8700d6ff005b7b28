"""Imports modules with user functions, given by name or by path, into a process that runs a part of the job.

A file is imported as a module with the file's name, from the text that it had when the job was started. So a worker on
another host, which does not have the file, has the same functions. If the file's folder exists there, the modules
beside the file are found. Folders of the user come last in the search, so a file `types.py` or `http.py` there is never
imported in place of the module that others mean.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from eddyline.errors import SettingError

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
        import_named(name)


def import_named(name: str) -> ModuleType:
    """Imports a module by name. One in the current folder is found, but never in place of a module of Python or of an
    installed package: SettingError if it has the name of one of Python's."""
    _look_in("")
    first, file = name.partition(".")[0], f"{name}.py"
    if first in sys.stdlib_module_names and os.path.exists(file):
        raise SettingError(f"{first} is a module of Python itself; rename {file}")
    return importlib.import_module(name)


def import_file(path: Path) -> None:
    """Imports a file, which can import modules of its folder. SettingError if there is none."""
    if not path.is_file():
        raise SettingError(f"there is no file {path}")
    _import(path.resolve(), path.read_text(encoding="utf-8"))


def _import(path: Path, text: str) -> None:
    name = _free_name(path)
    if name in sys.modules and _TEXTS.get(str(path)) == text:
        return
    _look_in(str(path.parent))
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    _TEXTS[str(path)] = text


def _look_in(folder: str) -> None:
    """Let modules of a folder be found, after all others."""
    if folder not in sys.path and os.path.isdir(folder or "."):
        sys.path.append(folder)


def _free_name(path: Path) -> str:
    """The name of a file as a module: that of the file, unless another module has it. Whoever imports that one gets it,
    not the file."""
    name = path.stem
    try:
        known = sys.modules.get(name) or find_spec(name)
    except (ImportError, ValueError):
        known = None
    origin = getattr(known, "__file__", None) or getattr(known, "origin", None)
    taken = name in sys.stdlib_module_names or (origin is not None and Path(origin).resolve() != path)
    return f"{name} of {path.parent}" if taken else name
