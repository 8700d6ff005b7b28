"""Environments of peers whose packages do not fit beside ours, made on first use in the user's cache.

Each is a folder `eddyline/peers/NAME` there, made by `python -m venv` and pip. One that cannot be made leaves its peer
out, with the reason.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

PACKAGES = {"flink": "apache-flink==2.3.0", "pathway": "pathway==0.33.0"}
_SECONDS = 1200

_log = logging.getLogger(__name__)


class NoEnvironment(Exception):
    """The environment cannot be made; the message says why."""


def python_of(name: str) -> str:
    """The Python of an environment, which is made if it is not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eddyline" / "peers"
    place = cache / f"{name}-{PACKAGES[name].partition('==')[2]}"
    python = place / "bin" / "python"
    if not (place / "complete").exists():
        _log.info("installing %s into %s, once", PACKAGES[name], place)
        shutil.rmtree(place, ignore_errors=True)
        try:
            subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True, text=True)
            command = [str(python), "-m", "pip", "install", "--quiet", PACKAGES[name]]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            raise NoEnvironment(f"pip install {PACKAGES[name]} took more than {_SECONDS} s") from None
        except (subprocess.CalledProcessError, OSError) as error:
            said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
            raise NoEnvironment(said[-1] if said else str(error)) from None
        (place / "complete").touch()
    return str(python)
