"""The picture of a run, made from its events: rows per second above the routes of the streams, both over time.

The events are those of a run or of a recorded file (`runtime/recording`). Between two samples a stream is said to have
had the route of the later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from eddyline.errors import SettingError
from eddyline.extras import install
from eddyline.runtime.recording.feed import Event

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT, _OF_ROUTE, _DOTS = 8.0, 2.4, 0.22, 80


def routes_over_time(events: Iterable[Event]) -> Figure:
    """The figure; SettingError if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise SettingError(f"plot_routes needs matplotlib; type: {install('plots')}") from None
    known = list(events)
    stretches = routes_of(known)
    samples = [event for event in known if event["type"] == "sample"]
    names = list(dict.fromkeys(sorted((source, route) for source, route, _, _ in stretches)))
    sources = list(dict.fromkeys(source for source, _ in names))
    figure = Figure(figsize=(_WIDTH, _HEIGHT + _OF_ROUTE * len(names)), dpi=_DOTS, layout="constrained")
    rates, routes = figure.subplots(2, 1, sharex=True, height_ratios=(1.5, max(1.0, _OF_ROUTE * len(names))))
    marks = [(0.0, 0), *((sample["t"], sample["rows_in"]) for sample in samples)]
    points = [(t, (rows - before) / (t - then)) for (then, before), (t, rows) in pairwise(marks) if t > then]
    rates.step(
        [0.0, *(t for t, _ in points)], [points[0][1] if points else 0, *(rate for _, rate in points)], where="pre"
    )
    rates.set(ylabel="rows a second", ylim=(0, None))
    rates.yaxis.set_major_formatter("{x:,.0f}")
    rates.grid(axis="y", alpha=0.3)
    for source, route, begin, end in stretches:
        at, colour = names.index((source, route)), sources.index(source) % 10
        routes.barh(at, end - begin, left=begin, height=0.7, color=f"C{colour}")
    routes.set_yticks(range(len(names)), [route for _, route in names], fontsize="x-small")
    routes.invert_yaxis()
    routes.set(xlabel="seconds since the start", xlim=(0, samples[-1]["t"] or 1) if samples else (0, 1))
    for before, now in pairwise(samples):
        if now.get("tree") != before.get("tree"):
            for axes in (rates, routes):
                axes.axvline(now["t"], color="grey", linewidth=1, linestyle="--")
            rates.annotate(
                str(now["tree"]), (now["t"], 1.0), (3, -3), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", fontsize="x-small", color="dimgrey",
            )  # fmt: skip
    return figure


def routes_of(events: Sequence[Event]) -> list[tuple[str, str, float, float]]:
    """(source, route, begin, end) of each stretch of time in which a source had one route; sources without one are left
    out.

    >>> run = {"type": "run", "sources": [{"alias": "o"}, {"alias": "p"}]}
    >>> route = {"source": "o", "steps": ["p by o.id = p.id"], "spans": [[0], [0, 1]]}
    >>> routes_of([run, *({"type": "sample", "t": t, "routes": [route]} for t in (0.0, 1.0, 2.0))])
    [('o', 'o -> p', 0.0, 2.0)]
    """
    found: list[tuple[str, str, float, float]] = []
    last: dict[str, int] = {}
    names: list[str] = []
    before = 0.0
    for event in events:
        if event["type"] == "run":
            names = [source["alias"] for source in event["sources"]]
        elif event["type"] == "sample":
            for route in event.get("routes", ()):
                source, text, at = route["source"], _name(route, names), last.get(route["source"])
                if at is not None and found[at][1] == text and found[at][3] == before:
                    found[at] = (source, text, found[at][2], event["t"])
                elif route["steps"] and event["t"] > before:
                    last[source] = len(found)
                    found.append((source, text, before, event["t"]))
            before = event["t"]
    return found


def _name(route: Mapping[str, Any], names: Sequence[str]) -> str:
    """The sources in the order in which they are probed; a step that adds none by its text."""
    spans, words = route.get("spans") or [], [route["source"]]
    for step, (span, larger) in zip(route["steps"], pairwise(spans), strict=False):
        more = [names[number] for number in larger if number not in span and number < len(names)]
        words += [" ".join(more) or step]
    return " -> ".join(words if spans else [route["source"], *route["steps"]])
