"""`./run ledger`: what the long suites have shown on the last code, and in all."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lab.ledger import CHANGED, FOLDER, ROOT, code_of, table


def main() -> int:
    """The command line."""
    code = code_of(ROOT)
    folder = Path(os.environ.get(FOLDER) or Path(__file__).parent)
    sys.stdout.write(table(folder, code) + "\n")
    if code.src.endswith(CHANGED):
        sys.stdout.write("src/ has changes that are not committed: the last code has shown nothing\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
