"""`--dashboard` on the command line: where it is said, and how the option is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.cli.parser import parser_of_commands
from eddyline.cli.watching import spelt_out

_SCRIPT = """\
CREATE STREAM s (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows 100, rate 100) TIMESTAMP BY ts;
SELECT k FROM s WHERE k < 0;
"""


@pytest.mark.parametrize(("given", "found"), [
    ([], None), (["--dashboard"], ""), (["--dashboard=8080"], "8080"), (["--dashboard=0.0.0.0:80"], "0.0.0.0:80"),
    (["--dashboard", "8080"], "8080"), (["--dashboard", "[::]:80"], "[::]:80"),
])  # fmt: skip
def test_the_option_does_not_take_the_script(given: list[str], found: str | None) -> None:
    options = parser_of_commands().parse_args(spelt_out(["run", *given, "job.sql"]))
    assert (options.script, options.dashboard) == ("job.sql", found)


_RUN = ("run", "--engine", "local", "job.sql")


def test_a_run_says_where_and_ends(
    in_tmp: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (in_tmp / "job.sql").write_text(_SCRIPT)
    monkeypatch.setenv("MY_TOKEN", "known")
    assert main([*_RUN, "--dashboard=0", "--dashboard-token-env", "MY_TOKEN"]) == 0
    assert re.search(r"^dashboard: http://127\.0\.0\.1:\d+/\?token=known$", capfd.readouterr().err, re.MULTILINE)


def test_a_token_is_read_from_the_environment_only(in_tmp: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (in_tmp / "job.sql").write_text(_SCRIPT)
    assert main([*_RUN, "--dashboard=0", "--dashboard-token-env", "NOT_SET"]) == 2
    assert capfd.readouterr().err == (
        "eddyline: --dashboard-token-env names the environment variable NOT_SET, which is not set\n"
    )
    assert main([*_RUN, "--dashboard=0", "--dashboard-token", "my-own-secret"]) == 2
    refused = capfd.readouterr().err
    assert "--dashboard-token-env DASHBOARD_TOKEN" in refused and "my-own-secret" not in refused


@pytest.mark.parametrize("given", ["job.sql", "0.0.0.0:80", "70000"])
def test_wrong_places_are_refused_before_the_run(in_tmp: Path, capfd: pytest.CaptureFixture[str], given: str) -> None:
    (in_tmp / "job.sql").write_text(_SCRIPT)
    assert main(["run", "--engine", "local", f"--dashboard={given}", "job.sql"]) == 2
    assert re.fullmatch(r"eddyline: dashboard: .*\n", capfd.readouterr().err)
