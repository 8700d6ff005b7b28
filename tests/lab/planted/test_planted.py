"""A share of `./run planted`: all patches fit the code, and some are planted."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lab.planted.main import ROOT, catcher, noticed, patches


@pytest.mark.parametrize("patch", patches(), ids=lambda p: f"{p.parts[-3]} {p.stem}")
def test_a_patch_fits_the_code_and_names_a_test(patch: Path) -> None:
    checked = subprocess.run(
        ["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    file, _, test = catcher(patch).partition("::")
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


def test_there_are_many() -> None:
    found = Counter(patch.parts[-3] for patch in patches())
    assert found["migration"] >= 15 and found["spill"] >= 6 and found["engine"] >= 6


@pytest.mark.share(4)
@pytest.mark.parametrize("patch", patches()[5::25], ids=lambda p: f"{p.parts[-3]} {p.stem}")
def test_a_planted_fault_is_noticed(patch: Path) -> None:
    assert noticed(patch) == ""


def test_a_patch_that_breaks_nothing_is_told_of(tmp_path: Path) -> None:
    text = patches()[0].read_text(encoding="utf-8")
    head, _, _ = text.partition("diff --git")
    harmless = tmp_path / "harmless.patch"
    comment = ROOT / "src" / "eddyline" / "migration" / "__init__.py"
    line = comment.read_text(encoding="utf-8").splitlines()[0]
    name = "src/eddyline/migration/__init__.py"
    hunk = f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1,2 @@\n {line}\n+# nothing\n"
    harmless.write_text(head.replace(catcher(patches()[0]), "tests/state/test_view.py") + hunk)
    assert noticed(harmless) == "nobody noticed"
