"""Planted faults: texts of the code replaced by others that break one rule each, and the test that must notice.

    python -m lab.planted.main [--only NAME] [--share 3 --seed 7] [--continue]

A fault is an entry of AREA.toml: the rule that it breaks, a file, the text that is there once (`old`), the text that
takes its place (`new`), and the test that must fail. The package is copied, the text is replaced in the copy, and the
test runs on the copy: if it passes, no test guards the rule. Exit status 1 if a fault goes unnoticed, or does not fit
the code.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.ledger import entered, stoppable

ROOT = Path(__file__).parents[2]
_PATIENCE = 600.0
"""Seconds after which a test that does not end is stopped."""


class UnfitFault(Exception):
    """The old text of a fault does not occur exactly once in its file."""


@dataclass(frozen=True)
class Fault:
    """A fault that can be planted, and the test that must notice it."""

    area: str
    name: str
    breaks: str
    file: str
    old: str
    new: str
    test: str

    def __str__(self) -> str:
        return f"{self.area} {self.name}"

    def planted(self, text: str) -> str:
        """The text of the file with the fault. UnfitFault if the old text is not there, or not only once."""
        if (times := text.count(self.old)) != 1:
            raise UnfitFault(f"its old text occurs {times} times in {self.file}")
        return text.replace(self.old, self.new)


def faults() -> list[Fault]:
    """All faults, by area."""
    return [
        Fault(area=table.stem, name=name, **entry)
        for table in sorted(Path(__file__).parent.glob("*.toml"))
        for name, entry in tomllib.loads(table.read_text(encoding="utf-8")).items()
    ]


def noticed(fault: Fault) -> str:
    """Plant a fault and run its test; empty if the test noticed it, else what went wrong."""
    with tempfile.TemporaryDirectory(prefix="eddyline-planted-") as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"))  # with the cache of compiled kernels
        file = Path(folder, fault.file)
        try:
            file.write_text(fault.planted(file.read_text(encoding="utf-8")), encoding="utf-8")
        except UnfitFault as unfit:
            return str(unfit)
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src", "PYTHONDONTWRITEBYTECODE": "1"}
        environment["EDDYLINE_FULL"] = "1"  # all cases of the test: the one that notices may be left out otherwise
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "--assert=plain", fault.test]
        try:
            ran = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=_PATIENCE
            )
        except subprocess.TimeoutExpired:
            return f"the test did not end within {_PATIENCE:.0f} s"
    if ran.returncode == 1:  # some tests failed; other exit statuses mean that pytest could not run them
        return ""
    return "nobody noticed" if ran.returncode == 0 else f"the test did not run: {ran.stdout.strip()[-300:]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="planted", description="faults that the tests must notice")
    parser.add_argument("--only", default=None, help="those with this in their area or name, such as spill or 07")
    parser.add_argument("--share", type=int, default=None, help="try only this many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--continue", dest="continues", action="store_true", help="leave out those already tried")
    given = parser.parse_args(arguments)
    chosen = [fault for fault in faults() if given.only is None or given.only in f"{fault.area}/{fault.name}"]
    if given.share is not None:
        chosen = sorted(random.Random(given.seed).sample(chosen, min(given.share, len(chosen))), key=str)
    command = " ".join(["planted", *([f"--only {given.only}"] if given.only else [])])
    command += f" --share {given.share}" if given.share is not None else ""
    with entered("planted", command, given.seed, given.continues) as entry:
        for fault in chosen[entry.first :]:
            wrong = noticed(fault)
            entry.cases += 1
            entry.differences += bool(wrong)
            sys.stdout.write(f"{fault}: {wrong or 'noticed by ' + fault.test}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{entry.cases} faults planted, {entry.differences} not noticed\n")
    return 1 if entry.differences else 0


if __name__ == "__main__":
    sys.exit(stoppable(main))
