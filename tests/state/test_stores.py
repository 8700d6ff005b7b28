"""Every Arrow type can be stored and read back: in slices, with late NULLs, after wind-back and release."""

from __future__ import annotations

from decimal import Decimal as D
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from eddyline.bound.kept_types import as_kept
from eddyline.codec import packed, unpacked
from eddyline.errors import JobError
from eddyline.state.arena import Arena
from eddyline.state.stores.any import store
from eddyline.state.stores.snapshots import StoreSnapshot
from eddyline.state.stores.store import ValueStore

WORDS = ["", "a", "zwölf", "x" * 40, "a"]
LISTS = [[1, 2], [], [3], [None], [4, 5, 6]]
MONTHS = [(1, 2, 3), (0, 0, 0), (-1, 5, -7), (1, 2, 3), (9, 9, 9)]
MAPS = [[("a", 1)], [], [("b", None), ("a", 2)], [("c", 3)], []]
STRUCT = pa.struct([("n", pa.int32()), ("s", pa.string()), ("l", pa.list_(pa.string()))])
STRUCTS = [{"n": 1, "s": "a", "l": []}, {"n": None, "s": "", "l": None}, {"n": 3, "s": None, "l": ["b", None]}] + [
    {"n": i, "s": str(i), "l": [str(i)] * i} for i in range(2)
]

VALUES: dict[pa.DataType, list[object]] = {
    pa.bool_(): [True, False, True, True, False],
    **{t: [1, 0, -1, 100, -128] for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{t: [1, 0, 255, 100, 7] for t in (pa.uint8(), pa.uint16(), pa.uint32())},
    pa.uint64(): [2**64 - 1, 0, 2**63, 1, 7],
    pa.float16(): [np.float16(v) for v in (0.5, -0.0, 1, 2, 3)],
    pa.float32(): [0.5, -0.0, float("inf"), 2.0, 3.0],
    pa.float64(): [0.1, -0.0, float("-inf"), 2.0, 3.0],
    pa.decimal32(7, 2): [D("1.25"), D("-1.25"), D(0), D("99999.99"), D(1)],
    pa.decimal64(15, 2): [D("1.25"), D("-1.25"), D(0), D("99999.99"), D(1)],
    pa.decimal128(38, 2): [D("1.25"), D(-(10**35)), D(0), D(10**35), D(1)],
    pa.decimal256(76, 2): [D("1.25"), D(-(10**70)), D(0), D(10**70), D(1)],
    pa.date32(): [0, 1, -1, 20_000, 5],
    pa.date64(): [0, 86_400_000, -86_400_000, 5 * 86_400_000, 0],
    pa.time32("ms"): [0, 1, 86_399_999, 5, 6],
    pa.time64("us"): [0, 1, 86_399_999_999, 5, 6],
    pa.timestamp("s"): [0, 1, -1, 2**33, 5],
    pa.timestamp("us", "Europe/Berlin"): [0, 1, -1, 2**50, 5],
    pa.duration("us"): [0, 1, -1, 2**50, 5],
    pa.month_day_nano_interval(): MONTHS,
    pa.binary(3): [b"abc", b"\0\0\0", b"xyz", b"abc", b"\xff\xff\xff"],
    pa.binary(16): [bytes([i]) * 16 for i in range(5)],
    pa.uuid(): [bytes([i]) * 16 for i in range(5)],
    **dict.fromkeys((pa.string(), pa.large_string()), WORDS),
    **{t: [w.encode() for w in WORDS] for t in (pa.binary(), pa.large_binary())},
    pa.list_(pa.int64()): LISTS,
    pa.large_list(pa.int16()): LISTS,
    pa.list_(pa.string()): [["a", "bc"], [], ["d"], [None, ""], []],
    pa.list_(pa.bool_()): [[True, False], [], [None], [False] * 9, [True]],
    pa.list_(pa.list_(pa.string())): [[["a"], []], [], [None, ["b", None]], [[]], [["c"]]],
    pa.list_(pa.int64(), 2): [[1, 2], [3, None], [5, 6], [7, 8], [9, 10]],
    pa.list_(pa.string(), 2): [["a", "b"], ["c", None], ["d", "e"], ["f", ""], ["", ""]],
    pa.list_(pa.list_(pa.int8(), 2)): [[[1, 2]], [], [None, [3, 4]], [[5, 6]], [[7, 8]]],
    pa.map_(pa.string(), pa.int64()): MAPS,
    pa.list_(STRUCT): [[STRUCTS[0]], [], STRUCTS[1:3], [None], [STRUCTS[4]]],
    STRUCT: STRUCTS,
    pa.struct([]): [{}] * 5,
    pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.int64()))), ("b", pa.bool_())]): [
        {"m": [("a", [1])], "b": True},
        {"m": [], "b": None},
        {"m": None, "b": False},
        {"m": [("b", None), ("c", [])], "b": True},
        {"m": [("d", [2, 3])], "b": True},
    ],
    pa.dictionary(pa.int8(), pa.string()): WORDS,
    pa.dictionary(pa.uint16(), pa.large_string()): WORDS,
    pa.dictionary(pa.int32(), pa.int64()): [5, 6, 5, -1, 0],
    pa.dictionary(pa.int32(), pa.decimal128(20, 2)): [D("1.25"), D("-1.25"), D(0), D("99999.99"), D(1)],
    pa.null(): [None] * 5,
}


def array_of(values: list[object], type_: pa.DataType) -> pa.Array:
    if type_ == pa.uuid():
        return pa.ExtensionArray.from_storage(type_, pa.array(values, pa.binary(16)))
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    return pa.array(values, type_)


def plain(array: pa.Array) -> list[object]:
    """Values that can be compared; only types that Python can hold."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.to_pylist()


def given(kept: ValueStore, rows: range | list[int]) -> list[object]:
    array = kept.gather(np.array(rows, np.int64))
    array.validate(full=True)
    return plain(array)


ALL = pytest.mark.parametrize("type_", list(VALUES), ids=str)


@ALL
def test_values_come_back(type_: pa.DataType) -> None:
    values = VALUES[type_]
    kept = store(Arena(), type_)
    kept.append(array_of(values, type_))
    assert given(kept, [4, 0, 0, 3, 2, 1]) == plain(array_of([values[i] for i in (4, 0, 0, 3, 2, 1)], type_))
    assert given(kept, []) == []
    got = kept.gather(np.arange(5))
    wanted = pa.dictionary(pa.int32(), type_.value_type) if pa.types.is_dictionary(type_) else type_
    assert got.type == wanted == kept.type


@ALL
def test_slices_nulls_wind_back_and_release(type_: pa.DataType, tmp_path: Path) -> None:
    """A random life: batches that are slices, NULLs only from some point on, undone batches, expiry, and now and then
    another process, which has only the files and the numbers."""
    rng = np.random.default_rng(len(str(type_)))
    pool = VALUES[type_]
    for life in range(3):
        arena = Arena(str(tmp_path / str(life)))
        kept, twin, base, committed = store(arena, type_), [], 0, 0
        for step in range(25):
            values = [pool[i] for i in rng.integers(0, 5, int(rng.integers(0, 9)))]
            if step > 8:
                values = [None if rng.random() < 0.3 else v for v in values]
            from_, upto = sorted(rng.integers(0, len(values) + 1, 2).tolist())
            kept.append(array_of(values, type_).slice(from_, upto - from_))
            twin += plain(array_of(values, type_))[from_:upto]
            alive = range(base, len(twin))
            assert given(kept, alive) == [twin[i] for i in alive]
            if rng.random() < 0.3:
                kept.truncate(committed)
                del twin[committed:]
            elif rng.random() < 0.5:
                committed = len(twin)
                base = int(rng.integers(base, committed + 1))
                kept.release(base)
            if rng.random() < 0.3:
                saved, held = packed(kept.saved()), kept.nbytes
                arena.close()
                arena = Arena(str(tmp_path / str(life)))
                kept = store(arena, type_)
                kept.restore(unpacked(saved, StoreSnapshot))  # type: ignore[arg-type]
                assert kept.nbytes == held
            some = rng.integers(base, len(twin), 6).tolist() if len(twin) > base else []
            assert given(kept, some) == [twin[i] for i in some]
        kept.truncate(committed)
        kept.release(committed)
        held = kept.nbytes
        if pa.types.is_dictionary(type_):
            assert held < 2000
        else:
            assert held <= 8 * (1 + str(type_).count("list") + str(type_).count("map") + str(type_).count("string"))


@ALL
def test_an_array_of_nothing_but_null(type_: pa.DataType) -> None:
    kept = store(Arena(), type_)
    kept.append(pa.nulls(3, type_))
    kept.append(array_of(VALUES[type_][:2], type_))
    assert given(kept, range(5)) == [None, None, None, *plain(array_of(VALUES[type_][:2], type_))]


def test_nulls_wound_back_leave_no_trace() -> None:
    """The validity column is made inside a batch that is undone; the next batch has no NULL."""
    kept = store(Arena(), pa.int64())
    kept.append(pa.array([1, 2]))
    kept.append(pa.array([None, 4]))
    kept.truncate(2)
    kept.append(pa.array([5, 6]))
    assert given(kept, range(4)) == [1, 2, 5, 6]
    kept.release(3)
    kept.append(pa.array([None, 7]))
    assert given(kept, range(3, 6)) == [6, None, 7]


def test_the_first_null_may_come_after_a_release() -> None:
    arena = Arena()
    kept = store(arena, pa.int64())
    kept.append(pa.array(range(100_000)))
    kept.release(99_998)
    kept.append(pa.array([None, 1]))
    assert given(kept, [99_998, 99_999, 100_000, 100_001]) == [99_998, 99_999, None, 1]
    assert kept.nbytes < 100


def test_list_slices_without_any_element() -> None:
    """The child of such a slice is empty, but does not begin at 0."""
    for type_ in (pa.list_(pa.string()), pa.list_(pa.list_(pa.string())), pa.list_(pa.bool_())):
        kept = store(Arena(), type_)
        filled = pa.array([VALUES[type_][0], [], None], type_)
        kept.append(filled.slice(1))
        kept.append(filled.slice(0, 1))
        kept.append(filled.slice(3))
        assert given(kept, range(3)) == [[], None, VALUES[type_][0]]


def test_lists_that_are_null_but_not_empty() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), pa.array([1, 2, 3]), mask=pa.array([True, False]))
    kept = store(Arena(), lists.type)
    kept.append(lists)
    assert given(kept, [1, 0]) == [[3], None]


def test_buffers_that_are_longer_than_they_need_be() -> None:
    kept = store(Arena(), pa.int64())
    kept.append(pa.Array.from_buffers(pa.int64(), 2, [None, pa.py_buffer(np.array([3, 4, 0]).tobytes() + b"xyz")]))
    assert given(kept, range(2)) == [3, 4]
    texts = store(Arena(), pa.string())
    offsets = np.array([0, 1, 2], np.int32).tobytes() + b"x"
    texts.append(pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"abcdef")]))
    assert given(texts, range(2)) == ["a", "b"]


def dictionary_of(codes: list[int | None], values: list[str | None], **options: bool) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), pa.array(values, pa.string()), **options)


def test_dictionaries_are_made_one() -> None:
    kept = store(Arena(), pa.dictionary(pa.int8(), pa.string()))
    kept.append(dictionary_of([0, 1, None], ["a", "b"]))
    kept.append(dictionary_of([0, 1, 2], ["b", "c", "a"]))
    kept.append(dictionary_of([2, 1, 0], ["d", None, "d"]))
    kept.append(dictionary_of([], []))
    kept.append(dictionary_of([1, 0], [None, None]))
    wanted = ["a", "b", None, "b", "c", "a", "d", None, "d", None, None]
    assert given(kept, range(11)) == wanted
    everything = kept.gather(np.arange(11))
    assert everything.dictionary.to_pylist() == ["a", "b", "c", "d"]
    assert everything.type.index_type == pa.int32()


def test_a_dictionary_may_begin_with_null_only() -> None:
    kept = store(Arena(), pa.dictionary(pa.int8(), pa.string()))
    kept.append(dictionary_of([0, 0], [None]))
    kept.append(dictionary_of([0], ["a"]))
    assert given(kept, range(3)) == [None, None, "a"]


def test_more_values_than_the_index_type_of_a_batch_can_hold() -> None:
    kept = store(Arena(), pa.dictionary(pa.int8(), pa.string()))
    for i in range(5):
        kept.append(dictionary_of(list(range(100)), [f"{i} {j}" for j in range(100)]))
    assert given(kept, range(500)) == [f"{i} {j}" for i in range(5) for j in range(100)]


def test_ordered_dictionaries_stay_ordered() -> None:
    kept = store(Arena(), pa.dictionary(pa.int8(), pa.string(), ordered=True))
    kept.append(dictionary_of([0, 1], ["low", "high"], ordered=True))
    assert kept.gather(np.arange(2)).type == pa.dictionary(pa.int32(), pa.string(), ordered=True)


def test_a_dictionary_that_grew_in_an_undone_batch() -> None:
    kept = store(Arena(), pa.dictionary(pa.int8(), pa.string()))
    kept.append(dictionary_of([0], ["a"]))
    kept.append(dictionary_of([0, 1], ["x", "y"]))
    kept.truncate(1)
    kept.append(dictionary_of([0, 1], ["y", "z"]))
    assert given(kept, range(3)) == ["a", "y", "z"]


def test_a_dictionary_that_comes_again_is_not_kept_again(tmp_path: Path) -> None:
    """It is kept once, also after a wind-back and in another process."""
    words = pa.dictionary(pa.int8(), pa.string())
    arena = Arena(str(tmp_path))
    kept = store(arena, words)
    kept.append(dictionary_of([0, 1, 1], ["a", "b"]))
    held = kept.nbytes
    kept.append(dictionary_of([0, 0], ["x", "y"]))
    kept.truncate(3)
    kept.append(dictionary_of([1, 0], ["a", "b"]))
    saved = packed(kept.saved())
    arena.close()
    kept = store(Arena(str(tmp_path)), words)
    kept.restore(unpacked(saved, StoreSnapshot))  # type: ignore[arg-type]
    kept.append(dictionary_of([0], ["a", "b"]))
    assert given(kept, range(6)) == ["a", "b", "b", "b", "a", "a"]
    assert kept.nbytes == held + 3 * 8


@pytest.mark.parametrize(
    "type_", [pa.sparse_union([pa.field("a", pa.int64())]), pa.list_view(pa.int64()), pa.json_()], ids=str
)
def test_what_cannot_be_kept_is_refused_in_a_sentence(type_: pa.DataType) -> None:
    with pytest.raises(JobError, match="cannot be kept"):
        store(Arena(), type_)


def test_storage_that_arrow_cannot_filter_travels_in_its_plain_form() -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"]))
    words = pa.dictionary(pa.int8(), pa.string())
    for array, plain in [
        (runs, pa.string()),
        (pa.array(["a", None], pa.string_view()), pa.string()),
        (pa.array([["a"], None, ["b", "a"]], pa.list_(words)), pa.list_(pa.string())),
        (pa.array([{"w": "a"}, None, {"w": None}], pa.struct([("w", words)])), pa.struct([("w", pa.string())])),
        (pa.array(["a", None]).dictionary_encode().cast(words), pa.dictionary(pa.int32(), pa.string())),
    ]:
        assert as_kept(array).type == plain
        assert as_kept(array).to_pylist() == array.to_pylist()
        store(Arena(), plain).append(as_kept(array))
