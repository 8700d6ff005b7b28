"""With `check=True` a SteM, a plan or a caller that breaks the routing constraints is caught."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from eddyline.engine.slot import Slot
from eddyline.errors import InternalError
from eddyline.plan.plan import Plan
from eddyline.routing.invariants import check_matches, check_packet
from eddyline.routing.packet import Packet
from eddyline.settings import Settings
from eddyline.state.builds import Builds
from eddyline.state.prober import Prober
from eddyline.state.probing import NO_BOUND, Limits, Matches
from tests.support.jobs import Job

WAITS = 100
JOIN = "SELECT a.k FROM a [RANGE 9 MICROSECONDS], b [RANGE 9 MICROSECONDS] WHERE a.k = b.k"


class IgnoresBefore(Prober):
    """Returns rows that were built after the probing tuple."""

    def probe_key(self, on, keys, rows, limits: Limits) -> Iterator[Matches]:
        return super().probe_key(on, keys, rows, limits._replace(before=np.array([self.built])))


class IgnoresExpiry(Prober):
    """Returns expired rows; ignores times, which would hide the fault."""

    def probe_key(self, on, keys, rows, limits: Limits) -> Iterator[Matches]:
        return super().probe_key(on, keys, rows, limits._replace(low=NO_BOUND, high=NO_BOUND, min_live=0))


class RepeatsItself(Prober):
    """Returns every match twice."""

    def probe_key(self, on, keys, rows, limits: Limits) -> Iterator[Matches]:
        for tuples, found in super().probe_key(on, keys, rows, limits):
            yield np.repeat(tuples, 2), np.repeat(found, 2)


class ForgetsToBuild(Builds):
    """Returns the numbers of new rows, but does not count them as built."""

    def add(self, number: int, rows: int) -> tuple[int, int]:
        first, last = super().add(number, rows)
        self.rows = first
        return first, last


class CountsOneBuildTooMany(Prober):
    """Also returns rows that were built together with the probing tuple, or right after it."""

    def rows_before(self, numbers: np.ndarray) -> np.ndarray:
        return super().rows_before(numbers + 1)


def with_fault(fault: type[Prober] | type[Builds], check: bool, packet: int | None = None) -> Job:
    job = Job(JOIN, Settings(check=check, packet=packet, input_batch=100), a="k", b="k")
    for stem in job.engine.slot.executor.stems:
        part = stem.builds if issubclass(fault, Builds) else stem.prober
        part.__class__ = fault
    return job


def run_late_match(job: Job) -> list[tuple]:
    """Rows of `a` are built, then rows of `b`, then both probe: a packet of WAITS tuples is never reached before."""
    job.feed(b=[(1, 5)])
    rows = job.feed(a=[(1, 7)], b=[(2, 7)])
    assert [stem.built for stem in job.engine.slot.executor.stems] == [1, 2]
    return rows


def test_without_a_fault_a_queue_between_build_and_probe_changes_nothing() -> None:
    assert run_late_match(Job(JOIN, Settings(check=True, packet=WAITS, input_batch=100), a="k", b="k")) == [(7,)]


def test_a_match_that_is_too_new_is_caught() -> None:
    """Without the bound the match would be found from both sides, and the result would occur twice."""
    assert len(run_late_match(with_fault(IgnoresBefore, check=False, packet=WAITS))) == 2
    with pytest.raises(InternalError, match="too new"):
        run_late_match(with_fault(IgnoresBefore, check=True, packet=WAITS))


def test_a_bound_that_is_one_build_too_late_is_caught() -> None:
    with pytest.raises(InternalError, match="components of a tuple started its probing"):
        run_late_match(with_fault(CountsOneBuildTooMany, check=True, packet=WAITS))


def test_an_expired_match_is_caught() -> None:
    job = with_fault(IgnoresExpiry, check=True)
    job.feed(a=[(1, 7)], b=[(1, 8)])
    job.feed(a=[(100, 1)], b=[(100, 1)])
    with pytest.raises(InternalError, match="expired"):
        job.feed(b=[(101, 7)])


def test_a_match_given_twice_is_caught() -> None:
    assert with_fault(RepeatsItself, check=False).feed(a=[(1, 7)], b=[(1, 7)]) == [(7,), (7,)]
    with pytest.raises(InternalError, match="twice"):
        with_fault(RepeatsItself, check=True).feed(a=[(1, 7)], b=[(1, 7)])


def test_a_row_that_was_not_built_first_is_caught() -> None:
    with pytest.raises(InternalError, match="not built"):
        with_fault(ForgetsToBuild, check=True, packet=1).feed(a=[(1, 7)])


def test_a_plan_that_forgets_a_predicate_gives_wrong_rows_that_the_naive_engine_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The constraints cannot detect this fault, but the comparison with the definition does."""
    probe = Plan._probe
    monkeypatch.setattr(Plan, "_probe", lambda *args: replace(probe(*args), predicates=()))
    job = Job(JOIN + " AND a.x <> b.x", a="k x", b="k x")
    assert job.feed(a=[(1, 7, 1)], b=[(1, 7, 1)]) != job.expected() == []


def probers(slot: Slot) -> list[Prober]:
    return [stem.prober for stem in slot.executor.stems]


def packet(numbers: int | list[int] = 2, **rows: list[int]) -> Packet:
    by_source = {int(s[1:]): np.array(r, np.int64) for s, r in rows.items()}
    signature = (sum(1 << s for s in by_source), 0)
    return Packet(by_source, signature, np.atleast_1d(numbers), next(iter(by_source.values())).size)


@pytest.fixture
def slot() -> Slot:
    job = Job(JOIN, a="k", b="k")
    for name, rows in (("a", [(1, 1), (1, 2)]), ("b", [(1, 3), (1, 4)]), ("a", [(1, 5)])):
        job.engine.slot.feed(name, job.needed(name, rows))
        job.engine.slot.executor.take_in()
    return job.engine.slot


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (packet(s0=[0, 1], s1=[0]), "ragged"),
        (packet(s0=[], s1=[]), "empty"),
        (packet(s0=[0], s1=[5]), "not built"),
        (packet(s0=[0, 1]), "0 components"),
        (packet(s0=[0, 0], s1=[1, 1]), "twice"),
        (packet(s0=[0, 1, 0], s1=[1, 0, 1]), "twice"),
        (packet([2, 2], s0=[0, 1, 1], s1=[1, 0, 1]), "number for each tuple"),
        (packet([2, 2, 2], s0=[0, 1], s1=[1, 0]), "number for each tuple"),
        (packet([2, 4], s0=[0, 1], s1=[1, 0]), "0 components"),
        (packet([4, 2], s0=[2, 2], s1=[1, 0]), "2 components"),
    ],
)
def test_packets_that_cannot_be(slot: Slot, wrong: Packet, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        check_packet(wrong, probers(slot), slot.executor.plan)


def test_packets_that_can_be(slot: Slot) -> None:
    check_packet(packet(s1=[0, 1]), probers(slot), slot.executor.plan)
    check_packet(packet(s0=[0, 1], s1=[1, 0]), probers(slot), slot.executor.plan)
    check_packet(packet([2, 4], s0=[0, 2], s1=[1, 1]), probers(slot), slot.executor.plan)
    check_packet(packet([4, 2], s0=[2, 1], s1=[1, 1]), probers(slot), slot.executor.plan)
    with pytest.raises(InternalError, match="2 components"):
        check_packet(packet(0, s0=[0], s1=[0]), probers(slot), slot.executor.plan)


def test_matches_outside_their_limits() -> None:
    none, limits = np.empty(0, np.int64), Limits(NO_BOUND, NO_BOUND, np.array([5]), 2, 9, np.zeros(1, np.int64))
    check_matches(0, np.array([0, 1]), np.array([2, 4]), limits)
    check_matches(0, none, none, limits)
    for row in (1, 5):
        with pytest.raises(InternalError):
            check_matches(0, np.array([0]), np.array([row]), limits)
    each = limits._replace(before=np.array([3, 5]))
    check_matches(0, np.array([0, 1, 1]), np.array([2, 4, 2]), each)
    with pytest.raises(InternalError, match="too new"):
        check_matches(0, np.array([1, 0]), np.array([4, 3]), each)
