"""The page on Python is what signatures and docstrings say."""

from __future__ import annotations

import inspect
from pathlib import Path

import eddyline as el
from eddyline.api.page import page
from eddyline.api.run import Run

PAGE = Path(__file__).parents[2] / "docs" / "python-api.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m eddyline.api.page > docs/python-api.md"


def test_everything_public_is_described() -> None:
    """By its heading, its signature and its text."""
    text = page()
    for name in ("query", "stream", "udf"):
        assert f"### el.{name}\n" in text and (inspect.getdoc(getattr(el, name)) or "-").split("\n")[0] in text
    for name, member in vars(Run).items():
        if not name.startswith("_"):
            assert f"#### Run.{name}\n" in text and (inspect.getdoc(member) or "-").split("\n")[0] in text
    assert "Run.wait(timeout: float | None = None) -> Summary | None\n" in text
    assert "| `rows_by_stream` | `Mapping[str, int]` | Rows that this run read from each stream" in text
    assert "```pycon\n>>> import datetime" in text and "### JobError\n" in text
