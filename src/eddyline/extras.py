"""How to install the packages that only some jobs need."""

from __future__ import annotations

import re
import shlex
import sys


def install(extra: str) -> str:
    """The command that installs the packages of an extra for this Python. It names them, because no index has Eddyline
    itself.

    >>> install("http").partition(" -m ")[2]
    "pip install 'aiohttp<4,>=3.11'"
    """
    from importlib import metadata

    try:
        lines = metadata.requires("eddyline") or []
    except metadata.PackageNotFoundError:
        lines = []
    packages = [line.partition(";")[0].strip() for line in lines if re.search(rf"extra == ['\"]{extra}['\"]", line)]
    if not packages:  # not installed: a folder in PYTHONPATH
        return f"pip install -e '.[{extra}]' in the checkout of Eddyline"
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])
