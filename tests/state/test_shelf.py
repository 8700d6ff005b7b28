"""An object on the shelf is written once, read without a copy, and deleted unless it is put again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eddyline.errors import JobError
from eddyline.state.shelf import Shelf

ONE = pa.record_batch({"x": pa.array([1, None, 3])})
TWO = pa.record_batch({"w": pa.array(["a", "b", "a"]).dictionary_encode(), "\0own": pa.array([True, False, None])})
NO_COLUMNS = pa.RecordBatch.from_arrays([], names=[])


class Thing:
    """An immutable object that equals no other."""

    def __init__(self, batches: list[pa.RecordBatch]) -> None:
        self.batches = batches


def batches_of(thing: Thing) -> list[pa.RecordBatch]:
    return thing.batches


@pytest.mark.parametrize("batches", [[ONE], [ONE, TWO], [NO_COLUMNS, TWO], [TWO.slice(1, 1), ONE.slice(3)]])
def test_batches_of_any_schemas_come_back(batches: list[pa.RecordBatch], tmp_path: Path) -> None:
    name = Shelf(str(tmp_path)).put(Thing(batches), batches_of)
    again = Shelf(str(tmp_path)).get(name, Thing).batches
    assert [batch.to_pydict() for batch in again] == [batch.to_pydict() for batch in batches]
    assert [batch.schema for batch in again] == [batch.schema for batch in batches]


def test_what_does_not_match_its_checksum_is_not_read(tmp_path: Path) -> None:
    name = Shelf(str(tmp_path)).put(Thing([ONE, TWO]), batches_of)
    path = tmp_path / f"{name}.arrow"
    whole = path.read_bytes()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1 << at % 8
        path.write_bytes(changed)
        with pytest.raises(JobError, match="does not match its checksum"):
            Shelf(str(tmp_path)).get(name, Thing)
    for length in (0, 3, len(whole) // 2):
        path.write_bytes(whole[:length])
        with pytest.raises((JobError, OSError, ValueError)):
            Shelf(str(tmp_path)).get(name, Thing)


def test_a_thing_is_written_once_and_is_one_thing(tmp_path: Path) -> None:
    shelf, thing = Shelf(str(tmp_path)), Thing([ONE])
    name = shelf.put(thing, batches_of)
    assert shelf.put(thing, lambda _: pytest.fail("written again")) == name
    assert shelf.get(name, lambda _: pytest.fail("read")) is thing
    assert shelf.put(Thing([ONE]), batches_of) != name


def test_what_is_not_put_again_is_swept_away(tmp_path: Path) -> None:
    shelf, old, new = Shelf(str(tmp_path)), Thing([ONE]), Thing([TWO])
    (tmp_path / "0").touch()
    shelf.put(old, batches_of)
    shelf.sweep()
    name = shelf.put(new, batches_of)
    shelf.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", f"{name}.arrow"]
    after = Shelf(str(tmp_path))
    thing = after.get(name, Thing)
    assert after.put(old, batches_of) != name, "that name is taken"
    after.sweep()
    assert [path.name for path in tmp_path.iterdir() if path.name == f"{name}.arrow"] == []
    assert thing.batches[0].to_pydict() == TWO.to_pydict(), "a mapped file stays readable"
