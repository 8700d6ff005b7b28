from __future__ import annotations

import pytest

from eddyline.runtime.access.token_bucket import TokenBucket


def test_the_rate_holds_in_the_long_run() -> None:
    bucket = TokenBucket(rate=10, now=0)
    now, sent = 0.0, []
    for _ in range(200):
        now += bucket.wait(now)
        sent.append(now)
    assert sent[-1] == pytest.approx((200 - 10) / 10)
    assert max(sum(s <= t < s + 1 for t in sent[20:]) for s in sent[20:]) <= 11


def test_a_slow_rate_begins_with_one() -> None:
    bucket = TokenBucket(rate=0.1, now=100)
    assert [bucket.wait(100), bucket.wait(100), bucket.wait(100)] == pytest.approx([0, 10, 20])
    assert bucket.wait(1000) == 0
