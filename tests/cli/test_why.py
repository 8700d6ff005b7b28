"""`run --record`, and `why` and `replay` on the record of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.runtime.recording.files import read
from tests.runtime.recording.test_recorder import SCRIPT


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("why")
    (folder / "job.sql").write_text(
        SCRIPT.replace(
            "SELECT a.v", f"CREATE SINK o USING parquet OPTIONS (path '{folder}/out');\nINSERT INTO o SELECT a.v"
        )
    )
    command = ["run", f"{folder}/job.sql", "--engine", "local", "--set", "prefer=a.v > 0", "--record", f"{folder}/r"]
    assert main([*command, "--record-size", "2MB"]) == 0
    return folder / "r"


def test_why_tells_the_run(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(record)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Run of 20") and lines[0].endswith(" s: done.")
    assert lines[1].startswith("6,000 rows in, ")
    assert any("rows with a.v > 0 come first, because the user has changed the preference." in line for line in lines)
    assert next(iter(read(record)))["query"].startswith("INSERT INTO o SELECT a.v --")


def test_why_tells_one_moment(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    *_, end = read(record)
    assert main(["why", str(record), "--at", str(end["t"])]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("At ") and "6,000 rows in" in lines[0] and lines[1].startswith("The plan was (a b c)")
    assert [line.split(" went to ")[0] for line in lines if " went to " in line] == [
        "Rows of a",
        "Rows of b",
        "Rows of c",
    ]


def test_replay_in_lines(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(record), "--text", "--speed", "1000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("local engine, 1 slot: INSERT INTO o SELECT a.v --") and lines[-1].endswith(" s: done")
    assert any(": preference: rows with a.v > 0 come first" in line for line in lines)
    assert any("6,000 rows in" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["why", "{record}", "--at", "noon"], "--at noon: write seconds of the run, such as 12.5, or a time in UTC"),
        (["why", "{record}", "--at", "9999"], "--at 9999 is not within the record, which is from 0 to "),
        (["why", "{record}/none"], "cannot read the record "),
        (["replay", "{record}", "--speed", "0"], "'0' is not a number above 0"),
        (["run", "x.sql", "--record-size", "small"], "'small' is not a size such as 200MB or 2GiB"),
    ],
)
def test_errors_are_one_line(
    record: Path, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([argument.format(record=record) for argument in arguments]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("eddyline")]
    assert len(lines) == 1 and error in lines[0]


def test_a_file_that_is_no_record_is_not_replaced(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = record.parent / "job.sql"
    job.write_text(job.read_text().replace(f"{record.parent}/out", f"{record.parent}/more"))
    assert main(["run", str(job), "--engine", "local", "--record", str(job)]) == 2
    assert "job.sql exists and is no record of a run; give another file" in capsys.readouterr().err
    assert job.read_text().startswith("CREATE STREAM")
