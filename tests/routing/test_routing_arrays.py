"""What steps did is counted per signature, and said in words."""

from __future__ import annotations

from tests.jobs import Job


def test_what_was_measured_is_said() -> None:
    job = Job("SELECT a.k FROM a [RANGE 5 SECONDS], b [RANGE 5 SECONDS] WHERE a.k = b.k", a="k", b="k")
    assert "measured" not in job.engine.explain()
    job.feed(a=[(1, 1), (2, 2), (3, 3)], b=[(1, 1), (2, 1)])
    assert job.engine.explain().endswith("measured:\n  a -> b by a.k = b.k: 3 tuples in, 0 out\n"
                                         "  b -> a by b.k = a.k: 2 tuples in, 2 out")  # fmt: skip
