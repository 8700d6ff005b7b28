"""`--prefer-from`: a file that says which rows come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.cli.prefer_from import PreferFrom
from eddyline.errors import SettingError


def test_a_file_is_read_again_when_it_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str | None] = []

    def prefer(text: str | None) -> None:
        if text == "wrong":
            raise SettingError("prefer: 'wrong': there is no column 'wrong'")
        heard.append(text)

    file = tmp_path / "first"
    preferred = PreferFrom(str(file), prefer)
    preferred.look()
    assert heard == [], "a file that does not exist says nothing"
    file.write_text("a.v = 1\n")
    preferred.look()
    preferred.look()
    assert heard == ["a.v = 1"]
    file.write_text("wrong")
    preferred.look()
    preferred.look()
    assert heard == ["a.v = 1"]
    warning = capsys.readouterr().err
    assert warning == "warning: prefer: 'wrong': there is no column 'wrong'; the preference stays as it was\n"
    file.write_text("")
    preferred.look()
    assert heard == ["a.v = 1", None]


def test_a_file_that_is_wrong_at_the_start_is_refused(tmp_path: Path) -> None:
    def prefer(text: str | None) -> None:
        raise SettingError("prefer: no")

    (tmp_path / "first").write_text("no")
    with pytest.raises(SettingError, match="prefer: no"):
        PreferFrom(str(tmp_path / "first"), prefer)
    with pytest.raises(SettingError, match="cannot read the preference"):
        PreferFrom(str(tmp_path), prefer)
