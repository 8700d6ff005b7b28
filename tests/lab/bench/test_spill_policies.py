"""`bench spill-policies`, small: the rows have the join ratios, the orders differ as they should, results never do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from eddyline.errors import InternalError
from eddyline.plan.partition_groups import key_groups
from lab.bench.ratio_joins import Phase, even, ratio_join, thirds
from lab.bench.spill_courses import PLAN, SpillCourse, courses, whole
from lab.bench.spill_policies import LONGER, MORE, OTHERS, OURS, compared
from lab.bench.stepped_job import Step, SteppedJob

GROUPS, RANGE, BATCH = 30, 3000, 200
JOIN = ratio_join(thirds(GROUPS), RANGE, even(12_000, GROUPS))
SETTINGS = replace(PLAN, groups=GROUPS)


def test_a_value_comes_as_often_in_a_range_as_its_group_says() -> None:
    for batch in JOIN.data.values():
        keys = batch.column("k").slice(0, RANGE)
        groups = key_groups(keys, GROUPS)
        for group, ratio in enumerate(thirds(GROUPS)):
            rows = np.flatnonzero(groups == group).size
            assert rows == pytest.approx(RANGE / GROUPS, rel=0.5)
            values = len(np.unique(batch.column("k").to_numpy()[key_groups(batch.column("k"), GROUPS) == group]))
            assert values == pytest.approx(RANGE / GROUPS / ratio, rel=0.1)


def test_phases_have_their_rows_and_weights() -> None:
    weights = np.where(np.arange(GROUPS) < 15, 10.0, 1.0)
    join = ratio_join([3.0] * GROUPS, RANGE, [Phase(4000, weights), Phase(2000, weights[::-1])])
    groups = key_groups(join.data["a"].column("k"), GROUPS)
    assert join.rows == groups.size == 6000
    assert (groups[:4000] < 15).mean() == pytest.approx(10 / 11, abs=0.03)
    assert (groups[4000:] < 15).mean() == pytest.approx(1 / 11, abs=0.03)


def test_the_results_of_a_job_are_those_of_the_join() -> None:
    join = ratio_join(thirds(GROUPS), RANGE, even(900, GROUPS))
    counts = [Counter(batch.column("k").to_pylist()) for batch in join.data.values()]
    with SteppedJob(join.query, SETTINGS) as job:
        found = [job.batch(rows).results for rows in join.batches(300)]
        found.append(job.end().results)
        assert sum(found) == job.digest[0] == sum(counts[0][k] * counts[1][k] * counts[2][k] for k in counts[0])
        assert len(found) == 4 and found[-1] == 0


def test_least_productive_first_makes_the_most_at_run_time() -> None:
    unlimited = whole(JOIN, SETTINGS, BATCH)
    limited = replace(SETTINGS, memory=round(unlimited.peak / 1.5))
    sides = {name: replace(limited, spill_policy=name) for name in (OURS, *OTHERS)}
    found = courses(JOIN, sides, BATCH, beside=unlimited)
    assert not unlimited.pushes and not unlimited.end.results
    for course in (rounds[0] for rounds in found.values()):
        assert course.pushes > 2 and 0 < course.made < unlimited.made
        assert course.end.results == course.end.swept == unlimited.made - course.made
        assert max(step.held for step in course.steps) <= limited.memory
    ours, random, most = (found[name][0].made for name in (OURS, *OTHERS))
    assert ours > 1.3 * random > 1.3 * most


def test_results_that_differ_are_noticed() -> None:
    join = ratio_join(thirds(GROUPS), RANGE, even(900, GROUPS))
    course = whole(join, SETTINGS, 300)
    assert courses(join, {"again": SETTINGS}, 300, beside=course)["again"][0].made == course.made
    for digest in ((course.digest[0], course.digest[1] ^ 1), (course.digest[0] + 1, course.digest[1])):
        with pytest.raises(InternalError, match="disagree"):
            courses(join, {"again": SETTINGS}, 300, beside=replace(course, digest=digest))


def test_ratios_are_medians_over_the_rounds_and_have_their_bars() -> None:
    def course(made: int, clean_up: float) -> SpillCourse:
        return SpillCourse(
            (Step(1.0, 1.0, made, 0, 9, 1, 5, ()),), Step(clean_up, clean_up, 100 - made, 0, 9, 0, 0, ()), (100, 0)
        )

    found = {
        OURS: [course(80, 1.0), course(80, 9.0), course(80, 1.0)],
        "random": [course(40, 2.0)] * 3,
        "most-productive": [course(50, 4.0)] * 3,
    }
    results = {result.metric: result for result in compared(1.5, found, 100)}
    assert results["results at run time / all results"].value == 0.8
    assert results["results at run time / random"].value == 2.0
    assert results["results at run time / random"].ok and results["results at run time / random"].bar == MORE["random"]
    assert not results["results at run time / most-productive"].ok
    longer = results["CPU time of the clean-up, most-productive / ours"]
    assert longer.value == 4.0 and longer.bar == LONGER["most-productive"] and longer.ok
    larger = {result.metric: result for result in compared(3.0, found, 100)}
    assert larger[longer.metric] == replace(longer, case="state 3 times memory", bar=None, ok=None)
