"""The README: its script runs on Spark, as the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pages import check_page


@pytest.mark.usefixtures("spark")
def test_the_readme_tells_the_truth(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_page("README.md", "spark", capsys)
