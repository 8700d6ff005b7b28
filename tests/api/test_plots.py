"""The picture of routes, from events that are made up and from those of a run."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.api.plots import routes_of, routes_over_time
from eddyline.errors import SettingError

_RUN = {"type": "run", "sources": [{"alias": "a"}, {"alias": "b"}, {"alias": "c"}]}


def sample(t: float, rows: int, tree: str, *routes: dict[str, Any]) -> dict[str, Any]:
    return {"type": "sample", "t": t, "rows_in": rows, "tree": tree, "routes": list(routes)}


def route(source: str, *spans: list[int]) -> dict[str, Any]:
    return {"source": source, "steps": [f"step {n}" for n in range(1, len(spans))], "spans": list(spans)}


BY_B, BY_C = route("a", [0], [0, 1], [0, 1, 2]), route("a", [0], [0, 2], [0, 1, 2])
EVENTS = [
    _RUN,
    sample(0.0, 0, "(a b c)", route("a")),
    sample(1.0, 10, "(a b c)", BY_B, route("b", [1], [1], [1, 2])),
    {"type": "note", "t": 1.5, "text": "x"},
    sample(2.0, 30, "(a b c)", BY_B),
    sample(3.0, 60, "((a c) b)", BY_C),
    sample(5.0, 60, "((a c) b)", BY_B),
]


def test_stretches_of_routes() -> None:
    assert routes_of(EVENTS) == [
        ("a", "a -> b -> c", 0.0, 2.0),
        ("b", "b -> step 1 -> c", 0.0, 1.0),
        ("a", "a -> c -> b", 2.0, 3.0),
        ("a", "a -> b -> c", 3.0, 5.0),
    ]
    without_spans = {"source": "a", "steps": ["one", "two"], "spans": None}
    assert routes_of([_RUN, sample(2.0, 1, "", without_spans)]) == [("a", "a -> one -> two", 0.0, 2.0)]


def test_the_picture() -> None:
    rates, routes = routes_over_time(EVENTS).axes
    (line,) = [line for line in rates.lines if line.get_linestyle() == "-"]
    assert [tuple(map(float, point)) for point in zip(*line.get_data(), strict=True)] == [
        (0, 10), (1, 10), (2, 20), (3, 30), (5, 0),
    ]  # fmt: skip
    assert [text.get_text() for text in routes.get_yticklabels()] == ["a -> b -> c", "a -> c -> b", "b -> step 1 -> c"]
    assert [text.get_text() for text in rates.texts] == ["((a c) b)"]
    assert len(routes.patches) == 4


@pytest.mark.parametrize("events", [[], [_RUN], [_RUN, sample(0.0, 0, "")]])
def test_a_picture_of_nothing(events: list[dict[str, Any]]) -> None:
    assert len(routes_over_time(events).axes) == 2


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SettingError, match=r"-m pip install 'matplotlib"):
        routes_over_time(EVENTS)


def test_a_run_has_events_and_a_picture() -> None:
    times = [datetime(2026, 1, 1) + timedelta(seconds=second) for second in range(20)]
    rows = pa.table({"ts": times, "k": [second % 3 for second in range(20)]})
    streams = {"a": el.stream(rows, time="ts"), "b": el.stream(rows, time="ts")}
    run = el.query("SELECT a.k FROM a [RANGE 9 SECONDS], b [RANGE 9 SECONDS] WHERE a.k = b.k", streams=streams).start()
    assert run.to_arrow().num_rows > 0
    kinds = [event["type"] for _, event in run.feed.since(0)]
    assert kinds[0] == "run" and kinds[-1] == "end" and "sample" in kinds
    _, routes = run.plot_routes().axes
    assert {text.get_text() for text in routes.get_yticklabels()} == {"a -> b", "b -> a"}
    assert "<th>route of a</th>" in run._repr_html_()
