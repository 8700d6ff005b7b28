"""Where a batch ends in each partition: by time, with a share where times do not tell."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

import pytest

from eddyline.runtime.sources.kafka_cut import cut

NOW = 10_000_000


class Cluster:
    """Partitions by the timestamps of their messages; counts the questions."""

    def __init__(self, times: Mapping[str, Sequence[int]]) -> None:
        self.asked = 0
        self._newest = {key: list(accumulate(some, max)) for key, some in times.items()}

    def offsets(self, keys: Sequence[str], moment: int) -> dict[str, int]:
        self.asked += 1
        found = {key: bisect_left(self._newest[key], moment) for key in keys}
        return {key: -1 if place == len(self._newest[key]) else place for key, place in found.items()}


@pytest.mark.parametrize("seed", range(20))
def test_all_messages_come_about_by_time(seed: int) -> None:
    rng = random.Random(seed)
    times = {
        f"t/{p}": sorted(rng.randrange(NOW) // rng.choice([1, 1000, 10**6]) for _ in range(rng.choice([1, 50, 3000])))
        for p in range(rng.randrange(1, 6))
    }
    at, moment, limit = dict.fromkeys(times, 0), 0, rng.choice([20, 100, 500])
    cluster, batches = Cluster(times), 0
    while left := {key: (at[key], len(some)) for key, some in times.items() if at[key] < len(some)}:
        ends, moment = cut(left, limit, moment, NOW, cluster.offsets)
        taken = sum(ends[key] - start for key, (start, _) in left.items())
        assert 1 <= taken <= limit and all(start <= ends[key] <= end for key, (start, end) in left.items())
        read = [t for key, (start, _) in left.items() for t in times[key][start : ends[key]]]
        later = sum(t > min(read) for key in times for t in times[key][: at[key]])
        assert later <= limit // 8 + 1, "hardly any message was read before one with an earlier time"
        at |= ends
        batches += 1
    assert cluster.asked <= 30 * batches
    assert batches <= 2 * sum(map(len, times.values())) / limit + 60


def test_a_message_of_the_future_does_not_stop_its_partition() -> None:
    times = {"a": [NOW * 2, *range(1000)], "b": list(range(1000))}
    ends, _ = cut({key: (0, len(some)) for key, some in times.items()}, 100, 0, NOW, Cluster(times).offsets)
    assert ends == {"a": 51, "b": 49}
