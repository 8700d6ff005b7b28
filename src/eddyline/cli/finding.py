"""What `eddyline doctor` finds in one place of the machine: a line, with what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Word = Literal["ok", "warn", "missing", "wrong", "optional"]
"""warn: jobs run, but worse. missing, wrong: they fail. optional: only what it names needs it."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor. `todo` is a sentence or a command; empty if nothing is to be done."""

    name: str
    state: Word
    text: str
    todo: str = ""

    def __str__(self) -> str:
        line = " ".join(f"{self.text}{self.todo and '; '}{self.todo}".split())
        return f"{self.state:<9} {self.name:<15} {line}"

    @property
    def fatal(self) -> bool:
        """Whether jobs of the chosen engine fail."""
        return self.state in ("missing", "wrong")
