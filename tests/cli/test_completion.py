"""The script for bash completes what is typed, in a real bash; the other shells get a script that names the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from eddyline.cli.main import main

_ASK = """
source ./completion.bash
complete -p eddyline >/dev/null || exit 3
while read -r -a COMP_WORDS; do
    [ "${COMP_WORDS[-1]}" = . ] && COMP_WORDS[-1]=""
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _eddyline
    echo "${COMPREPLY[*]}"
done
"""
"""Completes the last word of each line; a dot stands for an empty one."""


@pytest.fixture
def script(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    (in_tmp / "completion.bash").write_text(capsys.readouterr().out)
    (in_tmp / "ask.bash").write_text(_ASK)
    (in_tmp / "jobs.sql").write_text("")
    (in_tmp / "jobs.d").mkdir()
    return in_tmp


def test_bash_completes(script: Path) -> None:
    """Commands, options, files, folders, settings, engines."""
    expected = {
        "eddyline exp": {"explain"},
        "eddyline run jo": {"jobs.sql", "jobs.d"},
        "eddyline run jobs.sql --checkpoint jo": {"jobs.d"},
        "eddyline run jobs.sql --eng": {"--engine"},
        "eddyline run jobs.sql --engine .": {"spark", "local"},
        "eddyline run jobs.sql --set batch_": {"batch_rows=", "batch_seconds="},
        "eddyline run --set seed=1 --set arena": {"arena_dir=", "arena_limit="},
        "eddyline completion .": {"bash", "zsh", "fish"},
        "eddyline doctor --j": {"--json"},
    }
    asked = "".join(f"{line}\n" for line in expected)
    done = subprocess.run(["bash", "ask.bash"], cwd=script, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = [set(answer.split()) for answer in done.stdout.splitlines()]
    assert dict(zip(expected, answers, strict=True)) == expected


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(word in said for word in ("eddyline", "arena_limit=", "prefer-from"))


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "cmd"]) == 2
    assert "bash" in capsys.readouterr().err
