"""Values of variable length: gathered, hashed and compared as Python would."""

from __future__ import annotations

import numpy as np

from eddyline.kernels import values as kernels


def heap_of(values: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(b"".join(values), np.uint8), np.cumsum([0, *map(len, values)])


def random_values(rng: np.random.Generator, n: int) -> list[bytes]:
    return [bytes(rng.integers(97, 99, int(rng.integers(0, 4))).astype(np.uint8)) for _ in range(n)]


def test_gathering_bytes_and_places() -> None:
    rng = np.random.default_rng(1)
    for n in [0, 1, 5, 40]:
        values = random_values(rng, n)
        heap, starts = heap_of(values)
        rows = rng.integers(0, n, 2 * n) if n else np.empty(0, np.int64)
        offsets = np.full(rows.size + 1, -1)
        kernels.lengths(starts, rows, offsets)
        assert offsets.tolist() == np.cumsum([0, *(len(values[r]) for r in rows)]).tolist()
        out = np.empty(offsets[-1], np.uint8)
        kernels.copy_bytes(heap, starts, rows, out)
        assert out.tobytes() == b"".join(values[r] for r in rows)
        places = np.empty(offsets[-1], np.int64)
        kernels.positions(starts, rows, places)
        assert places.tolist() == [q for r in rows for q in range(starts[r], starts[r + 1])]


def fnv(value: bytes) -> int:
    h, mask = 0xCBF29CE484222325, 2**64 - 1
    for byte in value:
        h = (h ^ byte) * 0x100000001B3 & mask
    h ^= h >> 29
    h = h * 0xBF58476D1CE4E5B9 & mask
    return (h ^ (h >> 32)) - (2**64 if (h ^ (h >> 32)) >= 2**63 else 0)


def test_hash_bytes_as_its_twin() -> None:
    values = [b"", b"a", b"b", b"ab", b"ba", bytes(range(256)), b"\xff" * 40, "ü€".encode()]
    heap, starts = heap_of(values)
    out = np.empty(len(values), np.int64)
    kernels.hash_bytes(heap, starts.astype(np.int32), out)
    assert out.tolist() == [fnv(v) for v in values]
    assert len(set(out.tolist())) == len(values)


def test_combine_tells_pairs_apart() -> None:
    numbers = np.array([0, 1, -1, 2, 2**62, -(2**63), 2**63 - 1])
    left, right = (side.ravel() for side in np.meshgrid(numbers, numbers))
    out, again = np.empty(left.size, np.int64), np.empty(left.size, np.int64)
    kernels.combine(left, right, out)
    kernels.combine(left.copy(), right.copy(), again)
    assert out.tolist() == again.tolist()
    assert np.unique(out).size == out.size


def test_same_bytes_only_ever_turns_true_to_false() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        mine, theirs = random_values(rng, 20), random_values(rng, 15)
        (heap, starts), (other_heap, other_starts) = heap_of(mine), heap_of(theirs)
        rows, other_rows = rng.integers(0, 20, 30), rng.integers(0, 15, 30)
        before = rng.random(30) < 0.8
        out = before.copy()
        kernels.same_bytes(heap, starts, rows, other_heap, other_starts, other_rows, out)
        twin = [bool(b) and mine[r] == theirs[q] for b, r, q in zip(before, rows, other_rows, strict=True)]
        assert out.tolist() == twin
