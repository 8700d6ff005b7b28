"""`eddyline experiment`: to come."""

from __future__ import annotations

import argparse

from eddyline.errors import SettingError


def command(options: argparse.Namespace) -> int:
    """Refuses."""
    raise SettingError("experiment is not built yet")
