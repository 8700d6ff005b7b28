from __future__ import annotations

import pytest

from eddyline.optimizer.workload import JoinEdge, Selection, SourceLoad, Workload

S = SourceLoad.stream(10.0, 5.0)


def test_sizes_and_turnover() -> None:
    assert (S.rows, S.turnover) == (50.0, 0.2)
    assert SourceLoad.table(7.0).turnover == 0.0
    assert SourceLoad.stream(3.0, 0.0).rows > 0
    assert SourceLoad.stream(0.0, 5.0).rows == 0


@pytest.mark.parametrize("arguments", [(-1.0, 1.0), (1.0, float("inf")), (1.0, 0.0), (1.0, 1.0, -8.0)])
def test_no_such_source(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ValueError):
        SourceLoad(*arguments)


@pytest.mark.parametrize(
    "edges",
    [
        (JoinEdge(0, 0, 0.5),),
        (JoinEdge(0, 1, 0.5), JoinEdge(1, 0, 0.5)),
        (JoinEdge(0, 2, 0.5),),
        (JoinEdge(0, 1, 1.5),),
    ],
)
def test_no_such_edges(edges: tuple[JoinEdge, ...]) -> None:
    with pytest.raises(ValueError, match="edge"):
        Workload((S, S), edges)


@pytest.mark.parametrize("joint", [(1, 0.5), (7, 0.5), (3, -1.0)])
def test_no_such_correction(joint: tuple[int, float]) -> None:
    with pytest.raises(ValueError, match="correction"):
        Workload((S, S), (), (joint,))


@pytest.mark.parametrize("wrong", [(0, 0.5, 1.0), (4, 0.5, 1.0), (1, 0.0, 1.0), (1, 1.5, 1.0), (1, 0.5, -1.0)])
def test_no_such_selection(wrong: tuple[int, float, float]) -> None:
    Workload((S, S), (), selections=(Selection(3, 0.5, 1.0),))
    with pytest.raises(ValueError):
        Workload((S, S), (), selections=(Selection(*wrong),))
