"""Every source file's tests are found by its name: a test file of that name, or a line of tests/README.md."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "eddyline"
LAB = TESTS.parent / "lab"
FILES = [*sorted(SOURCE.rglob("*.py")), *sorted(LAB.rglob("*.py"))]
NAMES = [
    str(path.relative_to(LAB.parent if path.is_relative_to(LAB) else SOURCE))
    for path in FILES
    if not path.stem.startswith("__")
]


def table() -> list[tuple[list[str], list[str]]]:
    """Patterns of sources and names of tests, line by line."""
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    lines = [line.split("|")[1:3] for line in text.splitlines() if line.startswith("| `")]
    return [(re.findall("`(.*?)`", sources), re.findall("`(.*?)`", tests)) for sources, tests in lines]


def has_a_test_of_its_name(name: str) -> bool:
    """In the folder of the same name, or in one above it, but not beside all folders."""
    path = Path(name)
    folders = [folder for folder in path.parents if folder != Path() or path.parent == Path()]
    return any((TESTS / folder / f"test_{path.name}").exists() for folder in folders)


def test_every_source_is_found() -> None:
    patterns = [pattern for sources, _ in table() for pattern in sources]
    found = [any(fnmatch(name, pattern) for pattern in patterns) or has_a_test_of_its_name(name) for name in NAMES]
    assert [name for name, is_found in zip(NAMES, found, strict=True) if not is_found] == []


def test_the_table_names_files_that_exist() -> None:
    for sources, tests in table():
        assert [pattern for pattern in sources if not any(fnmatch(name, pattern) for name in NAMES)] == []
        assert [name for name in tests if not (TESTS / name).is_file()] == []
