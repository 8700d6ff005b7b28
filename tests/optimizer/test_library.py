"""Plans by the statistics for which they were found."""

from __future__ import annotations

import pytest

from eddyline.codec import packed, unpacked
from eddyline.optimizer.library import Library, RememberedSnapshot
from eddyline.optimizer.plans import Cost
from eddyline.optimizer.tuning import DEFAULT as TUNING
from eddyline.plan.tree import Tree, mjoin

HYBRID = Tree((Tree((0, 1)), 2))
FIGURES = {"rate 0": 1000.0, "selectivity 0-1": 1e-4}


def test_what_is_near_is_recalled() -> None:
    library = Library()
    assert not library and library.recall(FIGURES) is None
    library.remember(FIGURES, HYBRID, Cost(0.5, 100.0))
    assert library and library.recall(FIGURES) == (HYBRID, Cost(0.5, 100.0))
    assert library.has_other(mjoin(3)) and not library.has_other(HYBRID)
    for factor in (0.9, 1.1, TUNING.threshold, 1 / TUNING.threshold):
        assert library.recall({**FIGURES, "rate 0": 1000.0 * factor}) is not None
    for factor in (0.4, 2.5):
        assert library.recall({**FIGURES, "rate 0": 1000.0 * factor}) is None
        assert library.recall({**FIGURES, "selectivity 0-1": 1e-4 * factor}) is None
    assert library.recall({"rate 0": 1000.0}) is None, "statistics of another query"
    assert library.recall({**FIGURES, "rate 0": 0.0}) is None


def test_the_newest_plan_for_a_point() -> None:
    library = Library()
    library.remember(FIGURES, HYBRID, Cost(0.5, 100.0))
    library.remember(FIGURES, mjoin(3), Cost(0.4, 90.0))
    assert len(library) == 1 and library.recall(FIGURES) == (mjoin(3), Cost(0.4, 90.0))


def test_the_one_that_was_used_longest_ago_is_forgotten() -> None:
    library = Library()
    points = [{"rate 0": 10.0**n} for n in range(-5, TUNING.library_size - 4)]
    for number, point in enumerate(points[: TUNING.library_size]):
        library.remember(point, HYBRID, Cost(number, 0.0))
    assert library.recall(points[0]) is not None
    library.remember(points[TUNING.library_size], HYBRID, Cost(0.0, 0.0))
    assert len(library) == TUNING.library_size
    assert library.recall(points[0]) is not None and library.recall(points[1]) is None


@pytest.mark.parametrize("tree", [HYBRID, mjoin(3), Tree((Tree((0, 2)), Tree((1, 3))))])
def test_saved_and_restored(tree: Tree) -> None:
    library, again = Library(), Library()
    library.remember({"rate 0": 5.0}, mjoin(3), Cost(1.0, 1.0))
    library.remember(FIGURES, tree, Cost(0.5, 100.0))
    again.restore(unpacked(packed(library.saved()), tuple[RememberedSnapshot, ...]))
    assert again.saved() == library.saved() and again.recall(FIGURES) == library.recall(FIGURES) == (
        tree, Cost(0.5, 100.0),
    )  # fmt: skip
