"""Figure 11 of paper 001, small: what goes on while a source stalls."""

from __future__ import annotations

from lab.experiments import Figure
from lab.experiments.spanning_tree import figure_11, outage, slow


def during(figure: Figure, side: str) -> int:
    """The results that came during the stall."""
    stall = outage(True)
    came = [int(r["count"]) for r in figure.table.where(side=side) if stall.begin <= float(r["second"]) <= stall.end]
    return came[-1] - came[0]


def test_partial_results_go_on() -> None:
    figure = figure_11(True, lambda line: None)
    assert during(figure, "SteMs, partial") >= 20
    assert during(figure, "tree, partial") <= 1


def test_full_results_go_on_while_rows_come() -> None:
    figure = slow(True, lambda line: None)
    assert during(figure, "SteMs, full") >= 10
    assert during(figure, "tree, full") <= 1
