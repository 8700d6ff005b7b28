"""Segments: reading returns what was written, or an error that names the file."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.errors import JobError
from eddyline.state.log.segment import END, MAGIC, Segment, SegmentPart, written
from tests.support.properties import examples

ROWS = pa.record_batch({"k": pa.array([1, 2, None]), "s": pa.array(["a", None, "c"])})


def file(sections: list[tuple[str, list[pa.RecordBatch]]], meta: dict[str, object] | None = None) -> bytes:
    return b"".join(bytes(memoryview(part)) for part in written([SegmentPart(*s) for s in sections], meta or {}))


def read(data: bytes) -> Segment:
    return Segment("log/00000001-0-x", len(data), pa.py_buffer(data).slice)


def test_sections_come_back_in_order_with_their_batches() -> None:
    other = pa.record_batch({"z": pa.array([[1, 2], None])})
    segment = read(file([("b", [ROWS, ROWS.slice(1, 1)]), ("nothing", []), ("a", [other])], {"slot": 3}))
    assert segment.names == ["b", "a"] and segment.meta(dict[str, int]) == {"slot": 3}
    assert list(segment.batches("b")) == [ROWS, ROWS.slice(1, 1)] and list(segment.batches("a")) == [other]
    assert list(segment.batches("nothing")) == []


def test_sections_are_aligned() -> None:
    data = file([("a", [ROWS]), ("b", [ROWS])])
    entries = [entry for name in "ab" for entry in read(data).sections(name)]
    assert len(entries) == 2 and all(entry.offset % 64 == 0 for entry in entries)
    assert data.startswith(MAGIC) and data.endswith(END)


def test_a_segment_without_sections() -> None:
    assert read(file([])).names == []


@examples(30)
@given(st.lists(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=20), max_size=4))
def test_any_numbers(batches: list[list[int | None]]) -> None:
    made = [pa.record_batch({"n": pa.array(values, pa.int64())}) for values in batches]
    assert list(read(file([("n", made)])).batches("n")) == made


def test_every_bit_that_flips_is_noticed_or_lies_between_sections() -> None:
    data = file([("a", [ROWS]), ("b", [ROWS])], {"slot": 1})
    good = read(data)
    covered = [range(len(MAGIC))]
    covered += [range(e.offset, e.offset + e.length) for name in "ab" for e in good.sections(name)]
    covered.append(range(covered[-1].stop, len(data)))
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << at % 8
        try:
            segment = read(bytes(changed))
            assert [list(segment.batches(name)) for name in segment.names] == [[ROWS], [ROWS]]
            assert segment.meta(dict[str, int]) == {"slot": 1}
        except JobError as error:
            assert "the checkpoint is damaged: log/00000001-0-x: " in str(error)
        else:
            assert not any(at in part for part in covered), at


def test_every_torn_file_is_noticed() -> None:
    data = file([("a", [ROWS])])
    for length in range(len(data)):
        with pytest.raises(JobError, match="the checkpoint is damaged: log/00000001-0-x"):
            list(read(data[:length]).batches("a"))


def ranges(*ends: tuple[int, int] | None) -> bytes:
    """A file with a section of `a` for each of these ranges of groups; its rows are the number of the section."""
    parts = [
        SegmentPart("a", [pa.record_batch({"n": [n] * 1000})], *(end or (None, None))) for n, end in enumerate(ends)
    ]
    return b"".join(bytes(memoryview(part)) for part in written([*parts, SegmentPart("b", [ROWS])], {}))


def test_a_section_is_checked_when_it_is_first_read() -> None:
    data = bytearray(ranges((0, 3), (4, 4)))
    segment = Segment("x", len(data), lambda offset, length: pa.py_buffer(bytes(data)).slice(offset, length))
    first, second = segment.sections("a")
    assert segment.read(first)[0].num_rows == 1000
    for section in (first, second):
        data[section.offset + section.length - 500] ^= 1
    assert segment.read(first)[0].num_rows == 1000, "it was right when it was read"
    with pytest.raises(JobError, match="section a does not match its checksum"):
        segment.read(second)


def test_a_long_index_is_read_whole() -> None:
    many = ranges(*((n, n) for n in range(400)))
    assert len(read(many).sections("a")) == 400
