"""Labelled files: a file in the place of another one is refused in a sentence that names both."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from eddyline.errors import JobError
from eddyline.state.log.labelled import ABOUT, LabelledFiles
from eddyline.state.log.sealed import sealed
from eddyline.state.log.segment import written
from eddyline.state.log.store import Store


def files_in(folder: Path, identity: str = "abc") -> LabelledFiles:
    made = LabelledFiles(Store(str(folder)))
    made.describe({"id": identity})
    return made


def both(files: LabelledFiles, name: str) -> None:
    """Write a sealed file and a segment."""
    files.write(f"commits/{name}", name.encode())
    files.store.write_all(f"log/{name}", written([], name, files.label(f"log/{name}")))


def test_files_come_back(tmp_path: Path) -> None:
    both(files_in(tmp_path), "1")
    again = LabelledFiles(Store(str(tmp_path)))
    assert again.read("commits/1") == b"1" and again.segment("log/1").meta(str) == "1"


@pytest.mark.parametrize("folder", ["commits", "log"])
def test_a_copy_of_another_file_is_refused(folder: str, tmp_path: Path) -> None:
    here, there = files_in(tmp_path / "here"), files_in(tmp_path / "there", "other")
    for files, name in ((here, "1"), (here, "2"), (there, "1")):
        both(files, name)
    read = here.read if folder == "commits" else here.segment
    shutil.copy(tmp_path / "here" / folder / "1", tmp_path / "here" / folder / "2")
    with pytest.raises(JobError, match=rf"^the checkpoint is damaged: {folder}/2 is a copy of {folder}/1$"):
        read(f"{folder}/2")
    shutil.copy(tmp_path / "there" / folder / "1", tmp_path / "here" / folder / "1")
    with pytest.raises(JobError, match=rf"^the checkpoint is damaged: {folder}/1 is {folder}/1 of another checkpoint$"):
        read(f"{folder}/1")


def test_a_file_without_a_label_is_refused(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.store.write("commits/1", sealed(b"1"))
    files.store.write_all("log/1", written([], "1"))
    for read, name in ((files.read, "commits/1"), (files.segment, "log/1")):
        with pytest.raises(JobError, match=f"^the checkpoint is damaged: {name} does not say which file it is$"):
            read(name)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    files.write("commits/1", b"1")
    for name in ("commits/1", ABOUT):
        file = tmp_path / name
        file.write_bytes(file.read_bytes()[:-1])
        with pytest.raises(JobError, match=f"^the checkpoint is damaged: {name} does not match its checksum$"):
            files.read_about() if name == ABOUT else files.read(name)
