"""Planted faults: patches that break one rule each, and the test that must notice.

    python -m lab.planted.main [--only NAME] [--share 3 --seed 7]

A patch begins with the rule that it breaks and the test that catches it. It is applied to a copy of the package, and
the test is run on the copy: if the test passes, no test guards the rule. Exit status 1 if any fault goes unnoticed, or
a patch does not apply.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PATIENCE = 600.0
"""Seconds after which a test that does not end is stopped."""
_CAUGHT = re.compile(r"^Caught by (\S+)$", re.MULTILINE)


def patches() -> list[Path]:
    """All patches, by folder."""
    return sorted((ROOT / "tests").glob("*/planted/*.patch"))


def catcher(patch: Path) -> str:
    """The test that must notice the fault of a patch."""
    found = _CAUGHT.search(patch.read_text(encoding="utf-8"))
    assert found is not None, f"{patch.name} does not say which test catches it"
    return found[1]


def noticed(patch: Path) -> str:
    """Plant a fault and run its test; empty if the test noticed it, else what went wrong."""
    with tempfile.TemporaryDirectory(prefix="eddyline-planted-") as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"))  # with the cache of compiled kernels
        applied = subprocess.run(["git", "apply", str(patch)], cwd=folder, capture_output=True, text=True, check=False)
        if applied.returncode:
            return f"it does not apply: {applied.stderr.strip()}"
        environment = {**os.environ, "PYTHONPATH": f"{folder}/src", "PYTHONDONTWRITEBYTECODE": "1"}
        environment["EDDYLINE_FULL"] = "1"  # all cases of the test: the one that notices may be left out otherwise
        command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", "--assert=plain", catcher(patch)]
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
    parser.add_argument("--only", default=None, help="those with this in their paths, such as spill or 07")
    parser.add_argument("--share", type=int, default=None, help="try only this many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    chosen = [p for p in patches() if given.only is None or given.only in str(p.relative_to(ROOT))]
    if given.share is not None:
        chosen = sorted(random.Random(given.seed).sample(chosen, min(given.share, len(chosen))))
    missed = 0
    for patch in chosen:
        wrong = noticed(patch)
        missed += bool(wrong)
        sys.stdout.write(f"{patch.parts[-3]} {patch.stem}: {wrong or 'noticed by ' + catcher(patch)}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{len(chosen)} faults planted, {missed} not noticed\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
