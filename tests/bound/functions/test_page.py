"""The page on functions is what the table says."""

from __future__ import annotations

from pathlib import Path

from eddyline.bound import functions
from eddyline.bound.functions.page import page

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m eddyline.bound.functions.page > docs/functions.md"
    )


def test_page_names_every_function() -> None:
    text = page().lower().replace("\\|", "|")
    assert [name for name in functions.names() if name not in text] == []
