"""The version of Eddyline, which pyproject.toml says too."""

from __future__ import annotations

__version__ = "0.1.0"
