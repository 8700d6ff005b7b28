"""The file of a record: parts, crashes, full disks, and files that are no records."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from eddyline.cli.main import main
from eddyline.errors import SettingError
from eddyline.runtime.recording.files import RecordFile, read
from tests.support.events import RUN, sample


def refuse(warning: str) -> None:
    raise AssertionError(warning)


def write(path: Path, events: list[dict[str, Any]], **more: Any) -> None:
    file = RecordFile(path, refuse, **more)
    for event in events:
        file.write(event)
    file.close()


def test_events_are_read_as_they_were_written_also_while_the_run_goes_on(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "r", refuse)
    file.write(RUN)
    file.write(sample(1))
    assert [*read(tmp_path / "r")] == [RUN, sample(1)]
    file.close()


def test_a_record_is_cut_into_parts_and_read_as_one(tmp_path: Path) -> None:
    events = [RUN, *(sample(t) for t in range(1, 41))]
    write(tmp_path / "r", events, part_bytes=4000)
    parts = sorted(path.name for path in tmp_path.iterdir())
    assert len(parts) > 5 and parts[:2] == ["r", "r.1"]
    assert [*read(tmp_path / "r")] == events
    assert all(path.stat().st_size < 4000 + 2000 for path in tmp_path.iterdir())
    first = next(iter(read(tmp_path / "r.1")))
    assert first["type"] == "run", "each part can be read alone"


def test_the_oldest_parts_are_removed(tmp_path: Path) -> None:
    write(tmp_path / "r", [RUN, *(sample(t) for t in range(1, 41))], part_bytes=2000, parts=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r", "r.1", "r.2"]
    times = [event["t"] for event in read(tmp_path / "r")]
    assert times[-1] == 40.0 and len(times) < 20


def test_a_line_that_a_crash_has_cut_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "r", [RUN, sample(1), sample(2)])
    whole = (tmp_path / "r").read_bytes()
    for left in range(len(whole) - 1, len(whole) - 300, -7):
        (tmp_path / "r").write_bytes(whole[:left])
        assert [*read(tmp_path / "r")] == [RUN, sample(1)]


def test_a_record_of_another_run_is_kept_beside_and_not_read(tmp_path: Path) -> None:
    write(tmp_path / "r", [RUN, sample(1)])
    write(tmp_path / "r", [RUN | {"pid": 8}, sample(2)])
    assert [event["t"] for event in read(tmp_path / "r")] == [0.0, 2.0]
    assert [event["t"] for event in read(tmp_path / "r.1")] == [0.0, 1.0]


def test_a_full_disk_ends_the_record_with_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []
    file = RecordFile(tmp_path / "r", warnings.append)
    file.write(RUN)
    file.write(sample(1))
    real = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) > 20:
            return real(number, data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    file.write(sample(2))
    monkeypatch.undo()
    file.write(sample(3))
    file.close()
    assert warnings == [f"recording to {tmp_path / 'r'} ends here, and the job goes on: No space left on device"]
    assert (tmp_path / "r").read_bytes().endswith(b"\n") and [*read(tmp_path / "r")] == [RUN, sample(1)]


def test_files_that_are_no_records_are_neither_read_nor_replaced(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("a list\n")
    with pytest.raises(
        SettingError, match=r"notes.txt is no record of a run; `eddyline run --record FILE` writes one$"
    ):
        read(path)
    with pytest.raises(SettingError, match=r"notes.txt exists and is no record of a run; give another file$"):
        RecordFile(path, refuse)
    assert path.read_text() == "a list\n"
    with pytest.raises(SettingError, match=r"cannot read the record .*: No such file"):
        read(tmp_path / "none")
    with pytest.raises(SettingError, match=r"cannot write the record .*: No such file"):
        RecordFile(tmp_path / "none" / "r", refuse)
    write(path := tmp_path / "new", [RUN | {"version": 2}])
    with pytest.raises(SettingError, match=r"new is a record of version 2; this version of Eddyline reads version 1$"):
        read(path)


def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "r", [RUN])
    with (tmp_path / "r").open("ab") as file:
        file.write(b'7\n{"type": 3, "t": 1}\n{"type": "new kind"}\n{"type": "new kind", "t": 1}\n')
    assert [event["type"] for event in read(tmp_path / "r")] == ["run", "new kind"]


def test_only_its_user_can_read_a_record(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        (tmp_path / "empty").touch()
        for name in ("new", "empty"):
            RecordFile(tmp_path / name, lambda text: None).close()
            assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


HOSTILE = {
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "deep inside": b'{"type":"sample","t":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nothing in it": b'{"type":"decision","t":1}',
    "other types": b'{"type":"decision","t":1,"kind":[],"what":7,"why":{},"id":null}',
    "a number that is none": b'{"type":"sample","t":1e400}',
    "no plan": b'{"type":"outcome","t":1,"of":[],"paid":"x","what":{}}',
    "an odd end": b'{"type":"end","t":-1,"error":{}}',
}


@pytest.mark.parametrize("event", HOSTILE)
@pytest.mark.parametrize("command", ["why", "replay --text --speed 1000"])
def test_a_record_of_somebody_else_gets_at_most_one_line(
    command: str, event: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "record"
    file.write_bytes(b'{"type":"run","t":0,"version":1}\n' + HOSTILE[event] + b"\n")
    name, *options = command.split()
    status = main([name, str(file), *options])
    said = capsys.readouterr().err
    assert "bug" not in said and "Traceback" not in said and said.count("\n") == (status != 0)
    if status:
        assert status == 2 and said.startswith(f"eddyline: {file} is no record"), said
