"""Inputs of several commands: a script file, settings, modules with user functions."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from pathlib import Path

from eddyline.cli.streams import note
from eddyline.errors import EddylineError, SettingError, said
from eddyline.settings import Settings, likely_variable, parse, unknown_variables


def script_text(path: str) -> str:
    """The text of a script file; `-` is standard input."""
    try:
        if path != "-":
            return Path(path).read_text(encoding="utf-8-sig")
        if sys.stdin is None:
            raise SettingError("cannot read the script -: standard input is closed")
        return sys.stdin.read()
    except OSError as error:
        raise SettingError(f"cannot read the script {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"the script {path} is not text in UTF-8") from None


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings from --set, --config and the environment; warns of unknown variables."""
    settings = parse(options.settings, options.config, os.environ)
    for name in unknown_variables(os.environ):
        near = likely_variable(name)
        note(f"warning: the environment variable {name} has no meaning{f'; did you mean {near}?' if near else ''}")
    return settings


def import_udfs(modules: list[str]) -> None:
    """Import modules, by name or by path, which registers their functions. Modules in the current folder are found, as
    with `python -m`."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    for name in modules:
        try:
            if name.endswith(".py") or os.sep in name:
                _import_file(Path(name).with_suffix(".py"))
            else:
                importlib.import_module(name)
        except EddylineError as error:
            raise SettingError(f"--udf {name}: {error}") from error
        except (Exception, SystemExit) as error:
            raise SettingError(f"--udf {name}: {said(error)}") from error


def _import_file(path: Path) -> None:
    """Import a file as a module of its name; it can import modules of its folder."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SettingError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent.resolve()))
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
