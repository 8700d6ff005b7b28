from __future__ import annotations

from eddyline.runtime.access.circuit_breaker import CircuitBreaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = CircuitBreaker(failures=3, pause=10)
    for now in range(5):
        breaker.failed(now)
        breaker.failed(now)
        breaker.succeeded()
    assert breaker.wait(5) == 0 and breaker.open_since is None
    for now in (6, 7, 8):
        breaker.failed(now, f"failure {now}")
    assert (breaker.open_since, breaker.reason, breaker.wait(9)) == (8, "failure 8", 9)


def test_one_probe_after_the_pause() -> None:
    breaker = CircuitBreaker(failures=1, pause=10)
    breaker.failed(0)
    assert [breaker.wait(now) for now in (1, 10, 11)] == [9, 0, 9]  # the probe is under way
    breaker.failed(12)
    assert breaker.wait(13) == 9 and breaker.open_since == 0
    assert breaker.wait(22) == 0
    breaker.succeeded()
    assert [breaker.wait(22), breaker.wait(22)] == [0, 0]


def test_a_probe_that_is_never_heard_of_is_followed_by_another() -> None:
    breaker = CircuitBreaker(failures=1, pause=10)
    breaker.failed(0)
    assert [breaker.wait(now) for now in (10, 15, 20, 21)] == [0, 5, 0, 9]
