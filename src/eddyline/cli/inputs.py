"""Inputs of several commands: a script file, settings, modules with user functions."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from eddyline.cli.streams import note
from eddyline.errors import EddylineError, SettingError, said
from eddyline.runtime.running.modules import import_file, import_named, is_path
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
    """Import modules, by name or by path, which registers their functions. Modules in the current folder are found."""
    for name in modules:
        try:
            if is_path(name):
                import_file(Path(name).with_suffix(".py"))
            else:
                import_named(name)
        except EddylineError as error:
            raise SettingError(f"--udf {name}: {error}") from error
        except (Exception, SystemExit) as error:
            raise SettingError(f"--udf {name}: {said(error)}") from error
