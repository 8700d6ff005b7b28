"""Pages with stored results are what their queries give over them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eddyline.errors import SettingError
from lab.experiments import EXPERIMENTS
from lab.experiments.page import main, written

ROOT = Path(__file__).parents[3]
LAB = ROOT / "lab"


@pytest.mark.parametrize("name", ["lab/reproduce.md", "lab/peers.md", "docs/peers.md"])
def test_a_page_is_what_the_results_say(name: str, tmp_path: Path) -> None:
    page = Path(shutil.copy(ROOT / name, tmp_path))
    assert main([str(page), str(LAB / "figures")]) == 0
    assert page.read_text(encoding="utf-8") == (ROOT / name).read_text(encoding="utf-8"), (
        "write it anew: ./run docs --figures"
    )


def test_stored_results_belong_to_experiments() -> None:
    stored = {path.name.partition(".")[0] for path in (LAB / "figures").glob("*.csv")}
    stored -= {"peers", "peers-large"}  # of a benchmark
    assert len(stored) > 30
    assert stored <= EXPERIMENTS.keys()
    page = (LAB / "reproduce.md").read_text(encoding="utf-8")
    assert [name for name in stored if f'"{name}.summary"' not in page and f"figures/{name}.png" not in page] == []


def test_tables_and_numbers(tmp_path: Path) -> None:
    (tmp_path / "a-1.csv").write_text("n,seconds\n1,0.25\n2,1234.5\n3,\n")
    table = '<!-- results: FROM "a-1" WHERE n > 1 -->\n\nold\n\n<!-- end -->\n'
    page = f'{table}It took <!-- results: SELECT max(seconds) FROM "a-1" -->9<!-- end --> s.'
    once = written(page, tmp_path)
    assert "-->\n\n| n | seconds |\n| --- | --- |\n| 2 | 1234 |\n| 3 |  |\n\n<!-- end -->" in once
    assert once.endswith("-->1234<!-- end --> s.")
    assert written(once, tmp_path) == once


@pytest.mark.parametrize("query", ['FROM "b-1"', "SELECT 1 AS a, 2 AS b"])
def test_what_is_wrong_is_refused(query: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        written(f"<!-- results: {query} -->1<!-- end -->", tmp_path)
