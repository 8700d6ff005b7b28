"""The page of the dashboard in real Chromium: what it shows of a run, live and afterwards, and how it gets on.

With EDDYLINE_SCREENSHOTS=1 the test of a whole run also makes the pictures of docs/dashboard.md, in docs/figures.
"""

from __future__ import annotations

import io
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eddyline.dashboard.place import DashboardPlace
from eddyline.dashboard.server import serve
from tests.support.events import RUN, decision, sample
from tests.support.made_up_run import made_up_run
from tests.support.watched_page import DARK, LIGHT, TOKEN, Watched, Wire, chromium, feed_of, served

FIGURES = Path(__file__).parent.parent.parent / "docs" / "figures"
SECONDS = 90


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


def test_a_run_is_watched_from_start_to_end(browser: Any) -> None:
    events = iter(made_up_run(SECONDS))
    with served() as (feed, dashboard), Watched(browser, dashboard.address, **LIGHT) as watched:
        watched.says("#told", "Waiting for the first rows")
        assert TOKEN not in watched.page.url
        for event in itertools.takewhile(lambda event: event["t"] < SECONDS / 3 + 1, events):
            feed.publish(event)
        watched.says("#status", "Live")
        watched.says("#told", "Now: ")
        watched.says("#paths .path >> nth=1", "paymentsp")
        watched.says("#plan-now", "(o p s a)")
        assert "The plan has not changed" in watched.text("#told")
        for event in itertools.takewhile(lambda event: event["t"] < 2 * SECONDS / 3, events):
            feed.publish(event)
        watched.says("#changes .what", "(o p s a) → ((o s) p a)")
        watched.says("#plans .badge", "paid")
        watched.says("#plan-now", "((o s) p a)")
        for event in events:
            feed.publish(event)
        watched.says("#status", "The run is done")
        watched.says("#told", "It did not pay")
        assert watched.page.locator("#plans tbody tr").count() == 2
        watched.says("#tiles", "ended")
        watched.says("#tiles", "peak 27.9 MB")
        watched.says("#told", "cannot be told")
        dashboard.close()
        time.sleep(0.5)
        assert watched.text("#status") == "The run is done"
        look_back(watched)
        if os.environ.get("EDDYLINE_SCREENSHOTS"):
            picture(watched, "light")
            watched.page.locator("#plans button").first.click()
            picture(watched, "decision", height=860)
            watched.page.keyboard.press("Escape")
            picture(watched, "groups", height=1100, at="#groups-panel")


def test_what_a_record_says_is_shown_as_it_is(browser: Any) -> None:
    """Time and not look-ups makes a line thick, a plan takes routes along, and numbers stand beside each other."""
    events = [
        RUN | {"edges": [{"between": [0, 1]}, {"between": [1, 2]}], "replay": True},
        watched_sample(1.0, "(a b c)", {"a": "b c", "c": "b a"}),
        decision(
            2.0, 1, "plan", "(a b c) -> ((a b) c)", "a regular check found that the data changed: rate of a 1 -> 2;"
            " 0.2 -> 0.05 of a core, 1 MB -> 2 MB", measured={"rate a": 1e5, "cpu now": 0.2, "cpu": 0.05},
            expected={"cpu": 0.05, "cpu before": 0.2},
        ),
        decision(2.2, 2, "migration", "(a b c) -> ((a b) c)", "5 rows in 1 batches",
                 measured={"rows": 5.0, "seconds": 2.0}, expected={"rows": 4.0, "seconds": 1.0}),
        watched_sample(3.0, "((a b) c)", {"a": "b c", "c": "(a b)"}),
        decision(4.0, 3, "trial", "the trial of ((a b) c) is over", "it decides nothing", measured={"cpu": 0.1}),
        decision(5.0, 4, "plan", "((a b) c) stays", "a regular check"),
        watched_sample(6.0, "((a b) c)", {"a": "b c", "c": "(a b)"}),
    ]  # fmt: skip
    with served(events) as (_, dashboard), Watched(browser, dashboard.address) as watched:
        page = watched.page
        watched.says("#status", "Replay, 0:06")
        watched.says("#told", "At 0:06: ")
        watched.says("#told", "1 of 2 routes changed with the plan at 0:02.")
        watched.says("#told", "Most time goes into: (a b) asks c, 80 %.")
        assert {"a b → c 80 %", "20 %"} == {*page.locator("#graph .share").all_text_contents()} - {""}
        assert "20 look-ups, each takes 8 µs and finds 2" in (page.locator("#graph title").all_text_contents())[-1]
        assert page.locator("#lanes title").all_text_contents()[:2] == [
            "0:00 to 0:02: plan (a b c)",
            "0:02 to 0:06: plan ((a b) c)",
        ]
        watched.says("#legend", "small: a plan was looked for and kept")
        assert "red" not in watched.text("#legend")
        watched.says("#changes .why", "a regular check found that the data changed: rate of a 1 → 2")
        assert "of a core" not in watched.text("#changes")
        watched.says("#plans", "2 µs → 0.5 µs a row")
        rows = numbers_of(watched, "Migration: ")
        assert rows[0] == ["number", "expected", "measured"] and ["rows", "4", "5"] in rows
        assert page.locator("#detail .verdict").count() == 0
        page.keyboard.press("Escape")
        rows = numbers_of(watched, "Plan: ")
        assert rows[1] == ["CPU a row as the optimizer reckons", "2 µs", "0.5 µs", "1 µs"]
        watched.says("#detail .verdict", "Nothing has come of it yet")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Plans kept").click()
        page.locator("#changes button").first.click()
        assert page.locator("#detail .verdict").count() == 0


def test_rows_and_results_have_a_chart_each(browser: Any) -> None:
    """Beside results that are a thousand times as many, rows would be flat."""
    samples = [sample(t) | {"rows_in": 100 * n, "rows_out": 100_000 * n} for n, t in enumerate((1.0, 2.0, 3.0))]
    with served([RUN, *samples]) as (_, dashboard), Watched(browser, dashboard.address) as watched:
        for name, said in (("Rows a second", "in 100"), ("Results a second", "out 100 K")):
            watched.says(f"[data-chart='{name}'] .head p", said)


def test_the_range_is_readable_on_a_phone(browser: Any) -> None:
    with served([RUN, sample(1.0)]) as (_, dashboard), Watched(browser, dashboard.address, width=390) as watched:
        watched.says("#told", "Now: ")
        box = watched.page.locator("#range")
        wide = box.evaluate("one => one.offsetWidth")
        whole = box.evaluate("one => { one.style.width = 'max-content'; return one.offsetWidth }")
        assert wide >= whole, "the widest of the texts is cut"


def test_no_text_of_the_drawing_is_cut_on_a_phone(browser: Any) -> None:
    """The names of sources fit into their boxes, and the shares of time into the drawing."""
    names = {"r": "registrations", "w": "weather", "m": "members", "c": "cancellations"}
    sources = [{"alias": alias, "name": name, "kind": "stream", "window": ""} for alias, name in names.items()]
    edges = [{"between": [0, place]} for place in (1, 2, 3)]
    steps = [
        {
            "at": "r m",
            "span": [0, 2],
            "to": [0, 2, 3],
            "step": "c by r.k = c.k",
            "tuples": 10,
            "produced": 9,
            "us": 5.0,
        },
        {
            "at": "r w",
            "span": [0, 1],
            "to": [0, 1, 3],
            "step": "c by r.k = c.k",
            "tuples": 10,
            "produced": 9,
            "us": 4.0,
        },
    ]
    samples = [sample(t, tree="(r w m c)") | {"steps": steps, "routes": []} for t in (1.0, 2.0)]
    events = [RUN | {"sources": sources, "edges": edges}, *samples]
    with served(events) as (_, dashboard), Watched(browser, dashboard.address, width=390) as watched:
        watched.says("#graph .share", "r m → c … 100 %")
        drawing, *boxes = (watched.page.locator(f"#graph {what}") for what in ("svg", ".node rect", ".node .alias"))
        pairs = [(text, drawing) for text in watched.page.locator("#graph .share").all() if text.text_content()]
        pairs += zip(boxes[1].all(), boxes[0].all(), strict=True)
        for text, box in pairs:
            inner, outer = text.bounding_box(), box.bounding_box()
            assert inner["x"] >= outer["x"], text.text_content()
            assert inner["x"] + inner["width"] <= outer["x"] + outer["width"], text.text_content()


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ("((a b) c)", "results of a and b are kept, and joined with the others."),
        ("((a (b)+) (c)+)", "rows of b and c are grouped before they are joined."),
    ],
)
def test_a_plan_is_explained(browser: Any, tree: str, told: str) -> None:
    with served([RUN, sample(1.0, tree=tree)]) as (_, dashboard), Watched(browser, dashboard.address) as watched:
        watched.says("#plan-now", f"{tree}: {told}")


def watched_sample(t: float, tree: str, routes: dict[str, str]) -> dict[str, Any]:
    """A sample with two steps, of which the one with fewer look-ups takes more time."""
    steps = [
        {"at": "a", "span": [0], "to": [0, 1], "step": "b by a.k = b.k", "tuples": 1000, "produced": 10, "us": 20.0},
        {"at": "a b", "span": [0, 1], "to": [0, 1, 2], "step": "c by b.k = c.k", "tuples": 10, "produced": 20}
        | {"us": 80.0},
    ]
    found = [{"source": source, "steps": order.split(" ") if "(" not in order else [order], "rows": 9, "share": 1.0}
             for source, order in routes.items()]  # fmt: skip
    return sample(t, tree=tree) | {"steps": steps, "routes": found}


def numbers_of(watched: Watched, text: str) -> list[list[str]]:
    """Open a decision; the cells of its numbers."""
    watched.page.locator("#changes button").filter(has_text=text).first.click()
    rows = watched.page.locator("#detail .numbers tr").all()
    return [row.locator("th, td").all_inner_texts() for row in rows]


def look_back(watched: Watched) -> None:
    """The slider, the keys and a decision's numbers, without a server."""
    page = watched.page
    page.locator("#slider").fill("20")
    watched.says("#status", "Looking at 0:20")
    watched.says("#plan-now", "(o p s a)")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("]")
    watched.wait("document.querySelector('#moment').textContent !== '0:20'")
    page.keyboard.press("l")
    watched.says("#status", "The run is done")
    page.locator("#changes button").filter(has_text="did not pay").first.focus()
    page.keyboard.press("Enter")
    watched.says("#detail .verdict", "4.3 µs of CPU a row before, 4.6 after")
    watched.says("#detail .numbers", "CPU")
    focused = "document.activeElement.closest('dialog') && document.activeElement.textContent"
    assert page.evaluate(focused) == "Close" and page.evaluate("document.querySelector('#detail').scrollTop") == 0
    page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "Close"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Escape")
    watched.wait("!document.querySelector('#detail').open")
    page.locator("#paths .path").nth(1).click()
    watched.wait("document.querySelectorAll('#graph .step').length === 3")
    page.locator("#paths .path").nth(1).click()


def test_changes_are_on_the_page_within_two_seconds(browser: Any) -> None:
    """By the clock of this machine: from the moment when a decision was put into the feed until the page had it."""
    events = list(made_up_run(40, end=False))
    with served(events) as (feed, dashboard), Watched(browser, dashboard.address) as watched:
        watched.says("#status", "Live")
        watched.page.evaluate("""() => {
            window.came = {};
            new MutationObserver(() => {
                for (const one of document.querySelectorAll("#changes .what"))
                    window.came[one.textContent] ??= Date.now() / 1000;
            }).observe(document.querySelector("#changes"), {childList: true, subtree: true});
        }""")
        took = []
        changes = [("route", "Route: o: s, {}, a instead of a"), ("plan", "Plan: (o p s a) → (o {})")] * 4
        for number, (kind, what) in enumerate(changes):
            shown = what.format(number)
            text = shown.partition(": ")[2].replace("→", "->")
            written = time.time()
            feed.publish({"type": "decision", "t": 41.0 + number, "id": 1000 + number, "kind": kind, "what": text})
            watched.wait(f"window.came[{shown!r}]")
            took.append(watched.page.evaluate("text => window.came[text]", shown) - written)
        assert min(took) < 2, took  # the machine may be busy


def test_the_connection_is_cut_and_comes_back(browser: Any) -> None:
    events = list(made_up_run(40))
    with served(events[:10]) as (feed, dashboard):
        wire = Wire(int(dashboard.address.split(":")[2].split("/")[0]))
        address = f"http://127.0.0.1:{wire.port}/?token={TOKEN}"
        try:
            with Watched(browser, address) as watched:
                watched.says("#status", "Live")
                watched.is_cut = True
                wire.cut()
                watched.says("#status", "Connection lost, trying again")
                for event in events[10:]:
                    feed.publish(event)
                wire.mend()
                watched.says("#status", "The run is done")
                shown = watched.text("#more")
                watched.page.reload()  # now all of it comes from the history
                watched.says("#status", "The run is done")
                assert watched.text("#more") == shown
        finally:
            wire.cut()


def test_another_server_on_the_same_port_is_read_from_its_beginning(browser: Any) -> None:
    first, second = feed_of(), feed_of()
    for event in made_up_run(20, end=False):
        first.publish(event)
    second.publish(next(iter(made_up_run(1))) | {"query": "SELECT 2", "began": "2026-11-18T21:00:00Z"})
    one = serve(first, DashboardPlace(port=0, token=TOKEN))
    port = int(one.address.split(":")[2].split("/")[0])
    wire = Wire(port)
    try:
        with Watched(browser, f"http://127.0.0.1:{wire.port}/?token={TOKEN}") as watched:
            watched.says("#status", "Live")
            watched.is_cut = True
            wire.cut()
            one.close()
            with serve(second, DashboardPlace(port=port, token=TOKEN)):
                watched.says("#status", "Connection lost")
                wire.mend()
                watched.wait("document.querySelector('#about').textContent.includes('SELECT 2')")
                watched.says("#status", "Live")
    finally:
        wire.cut()
        one.close()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("light", LIGHT),
        pytest.param("dark", DARK, marks=pytest.mark.long),
        pytest.param("phone", LIGHT | {"width": 390, "height": 800}, marks=pytest.mark.long),
    ],
)
def test_everybody_can_read_it(browser: Any, name: str, options: dict[str, Any]) -> None:
    """axe finds no violation, also with the dialogs open and a table in place of a chart."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with served(made_up_run(SECONDS)) as (_, dashboard), Watched(browser, dashboard.address, **options) as watched:
        watched.says("#status", "The run is done")
        watched.page.locator("[data-chart='Rows a second'] button").click()
        assert problems(axe, watched) == []
        if name != "phone":
            watched.page.locator("#changes button").first.click()
            assert problems(axe, watched) == []
            watched.page.keyboard.press("Escape")
            watched.page.keyboard.press("?")
            watched.says("#keys", "What it does")
            assert problems(axe, watched) == []
            watched.page.keyboard.press("Escape")
        watched.page.locator("[data-chart='Rows a second'] button").click()
        wide = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0
        if name != "light" and os.environ.get("EDDYLINE_SCREENSHOTS"):
            picture(watched, name, **({"width": 390, "height": 1400} if name == "phone" else {}))


def problems(axe: Any, watched: Watched) -> list[str]:
    found = axe.run(watched.page).response["violations"]
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]


def test_everything_by_keyboard(browser: Any) -> None:
    with served(made_up_run(SECONDS)) as (_, dashboard), Watched(browser, dashboard.address) as watched:
        watched.says("#status", "The run is done")
        page, seen = watched.page, set[str]()
        for _ in range(80):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.closest('[id]')?.id ?? ''"))
        wanted = "theme help play back on slider live range kinds changes paths plans metric packets streams"
        assert set(wanted.split()) <= seen
        dark = page.evaluate("document.documentElement.dataset.theme")
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") != dark


def test_motion_is_reduced_where_asked(browser: Any) -> None:
    with served(made_up_run(20)) as (_, dashboard):
        for motion, name in (("reduce", "none"), ("no-preference", "drift")):
            with Watched(browser, dashboard.address, reduced_motion=motion) as watched:
                watched.page.locator("#graph .drops").first.wait_for(state="attached")
                drop = watched.page.locator("#graph .drops").first
                assert drop.evaluate("drop => getComputedStyle(drop).animationName") == name


@pytest.mark.long
def test_two_hours_stay_small(browser: Any) -> None:
    """Live, so every sample of two hours goes through the page one by one."""
    with served() as (feed, dashboard), Watched(browser, dashboard.address) as watched:
        watched.says("#status", "Live")
        for event in made_up_run(7200, groups=256):
            feed.publish(event)
        watched.says("#status", "The run is done", seconds=240)
        session = watched.context.new_cdp_session(watched.page)
        session.send("Performance.enable")
        session.send("HeapProfiler.collectGarbage")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        assert metrics["JSHeapUsedSize"] < 200e6
        watched.page.locator("#range").select_option("600")
        watched.page.locator("#slider").fill("3600")
        watched.says("#status", "Looking at 1:00:00")


def picture(watched: Watched, name: str, width: int = 1280, height: int = 1480, at: str = ".top") -> None:
    """A picture for the documentation, of as many colours as keep it small."""
    page = watched.page
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate(f"scrollTo(0, scrollY + document.querySelector('{at}').getBoundingClientRect().top - 64)")
    page.wait_for_timeout(1500)
    shot = Image.open(io.BytesIO(page.screenshot(scale="css"))).convert("RGB")
    shot.quantize(128, dither=Image.Dither.NONE).save(FIGURES / f"dashboard-{name}.png", optimize=True)
