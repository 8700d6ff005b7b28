"""`eddyline doctor`: what this machine has and lacks for Eddyline, a line each, with what to do.

Invariant: every check gives a line, even if it raises an exception. So this file imports only the standard library, and
files of Eddyline that need nothing else. The checks run side by side, because some of them wait for a process.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace

from eddyline.cli import doctor_machine as machine
from eddyline.cli import doctor_packages as installed
from eddyline.cli import doctor_spark as on_spark
from eddyline.cli.finding import Finding
from eddyline.cli.streams import say
from eddyline.errors import SettingError
from eddyline.settings import Settings, parse

Check = Callable[[], Iterator[Finding]]


def command(options: argparse.Namespace) -> int:
    """Print a line for each finding, or an object of JSON; 1 if something that jobs need is missing or wrong."""
    if options.engine not in ("spark", "local"):
        raise SettingError(f"there is no engine '{options.engine}': it is spark or local")
    settings, wrong = Settings(), None
    try:
        settings = parse(options.settings, options.config, os.environ)
    except SettingError as error:
        wrong = error
    findings = find(_checks(settings, wrong, options.checkpoint, options.spark), options.engine)
    ok = not any(finding.fatal for finding in findings)
    if options.json:
        print(json.dumps({"ok": ok, "engine": options.engine, "checks": [asdict(finding) for finding in findings]}))
    else:
        say("\n".join(map(str, findings)))
    return 0 if ok else 1


def _checks(settings: Settings, wrong: SettingError | None, checkpoint: str | None, start: bool) -> dict[str, Check]:
    """The checks by name, in the order of their lines."""
    return {
        "Python": installed.python,
        "packages": installed.packages,
        "imports": installed.loading,
        "kernels": installed.kernels,
        "Java": on_spark.java,
        "pyspark": on_spark.pyspark,
        **({"Spark": on_spark.starts} if start else {}),
        "cores": machine.cores,
        "memory": machine.memory,
        "shared memory": lambda: machine.shared_memory(settings),
        "disk": lambda: machine.disk(settings, checkpoint),
        "files": machine.limits,
        "loopback": lambda: machine.network(settings),
        "encoding": machine.texts,
        "settings": lambda: machine.variables(wrong),
        "extras": installed.extras,
    }


_OF_SPARK = ("Java", "pyspark", "shared memory")
"""Checks of parts that the local engine does without."""


def find(checks: dict[str, Check], engine: str) -> list[Finding]:
    """The findings of all checks, in order; for the local engine what only Spark needs is optional."""
    found: list[Finding] = []
    with ThreadPoolExecutor(len(checks)) as threads:
        for name, findings in zip(checks, threads.map(_run, checks.items()), strict=True):
            spared = engine == "local" and name in _OF_SPARK
            found += [replace(f, state="optional") if spared and f.state != "ok" else f for f in findings]
    return found


def _run(check: tuple[str, Check]) -> list[Finding]:
    name, look = check
    try:
        return list(look())
    except Exception as error:
        return [Finding(name, "warn", f"could not be checked ({type(error).__name__}: {error})")]
