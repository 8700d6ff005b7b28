"""What several commands are given: a script file, settings, modules with user functions."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

from eddyline.errors import EddylineError, SettingError
from eddyline.settings import Settings, parse


def script_text(path: str) -> str:
    """The text of a script file; `-` is standard input."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SettingError(f"cannot read the script {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingError(f"the script {path} is not text in UTF-8") from None


def settings_of(options: argparse.Namespace) -> Settings:
    """From --set, --config and the environment."""
    return parse(options.settings, options.config, os.environ)


def import_udfs(modules: list[str]) -> None:
    """Imports modules, which registers their functions. A module in the current folder is found, as with `python
    -m`."""
    if modules and "" not in sys.path:
        sys.path.insert(0, "")
    for name in modules:
        try:
            importlib.import_module(name.removesuffix(".py").replace("/", "."))
        except EddylineError:
            raise
        except Exception as error:
            raise SettingError(f"--udf {name}: {type(error).__name__}: {error}") from error
