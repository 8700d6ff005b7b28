"""The documentation: links between pages, the navigation, and (long) the site that `./run docs` builds."""

from __future__ import annotations

import functools
import http.server
import importlib.util
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parent.parent
_OUTSIDE = ("README.md", "ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md")
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "lab").glob("*.md"), *(ROOT / name for name in _OUTSIDE)])
RUN = {"index", "guide", "python", "from-spark", "from-flink", "files", "generated"}
"""Pages of which cli/test_documents.py runs every block."""
CHECKED_OTHERWISE = {"language", "sinks-tables", "sources-kafka", "sources-redis"}
"""Pages whose blocks cql/test_language_page.py checks, or `test_blocks_that_cannot_run` here."""


def _text(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@functools.cache
def _anchors(page: Path) -> set[str]:
    """What links can name in a page: its headings, as GitHub and the site write them."""
    headings = re.findall(r"^#+ (.*)$", _text(page), re.MULTILINE)
    words = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    """Every link to a file of the repository is right, and its anchor is a heading there."""
    for link in re.findall(r"\]\(([^)\s]+)\)", _text(page)):
        place, _, anchor = link.partition("#")
        if urlsplit(place).scheme:
            continue
        target = (page.parent / place) if place else page
        assert target.exists(), f"{link}: there is no such file"
        if anchor:
            assert anchor in _anchors(target), f"{link}: there is no such heading"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed == pages | set(_hooks().PAGES.values())


def test_pages_begin_with_their_readers() -> None:
    """The first paragraph says who should read the page, or what it is; the title is not all there is."""
    for page in (ROOT / "docs").rglob("*.md"):
        title, blank, first = page.read_text(encoding="utf-8").split("\n")[:3]
        assert title.startswith("# ") and not blank and len(first) > 20, page.name


def test_every_block_is_run_or_checked() -> None:
    """Blocks that say sql, python or sh are run. Those that cannot run say SQL or py, or nothing."""
    with_blocks = {
        page.stem
        for page in (ROOT / "docs").rglob("*.md")
        if re.search(r"^```(sql|python|sh)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert with_blocks == RUN | CHECKED_OTHERWISE


def test_blocks_that_cannot_run() -> None:
    """They need a server; at least the grammar accepts the declarations."""
    from eddyline.cql.script import parse

    for name in CHECKED_OTHERWISE - {"language"}:
        text = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
        for script in re.findall(r"^```sql\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            assert parse(f"{script} CREATE STREAM s USING json TIMESTAMP BY ts; SELECT * FROM s")


def _hooks() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/site/hooks.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_built_site(site: Path) -> None:
    """Every file and anchor that a built page names is there, and none is of another host."""
    anchors: dict[Path, set[str]] = {}
    named: list[tuple[Path, str, str]] = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        anchors[page] = set(map(unescape, re.findall(r'\sid="?([^"\s>]+)', text)))
        loaded = re.findall(r'<(?:script|img|link|iframe)\b[^>]*?\s(?:src|href)="?([^"\s>]+)', text)
        assert not [url for url in loaded if urlsplit(url).scheme not in ("", "data")], page.name
        for url in {*loaded, *re.findall(r'<a\b[^>]*?\shref="?([^"\s>]+)', text)}:
            parts = urlsplit(unescape(url))
            if not parts.scheme and page.name != "404.html":
                named.append((page, unquote(parts.path), unquote(parts.fragment)))
    assert len(anchors) > 30
    for page, path, fragment in named:
        target = (page.parent / path).resolve() if path else page
        target = target / "index.html" if target.is_dir() else target
        assert target.is_file(), f"{page.name} names {path}"
        if fragment and target in anchors and not fragment.startswith("__"):
            assert fragment in anchors[target], f"{page.name} names {path}#{fragment}"
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\([\"']?https?:", sheet.read_text(encoding="utf-8")), sheet.name


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.long
@pytest.mark.skipif(not Path("/usr/bin/chromium").exists(), reason="Debian's chromium is not installed")
def test_site_in_a_browser(address: str) -> None:
    """Search finds a page; the browser asks no other host and says no error; pages are as wide as a phone."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 390, "height": 844})
        asked: list[str] = []
        said: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        for name in ("lab/reproduce", "settings", "index"):
            page.goto(f"{address}/{name}.html", wait_until="load")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        page.set_viewport_size({"width": 1366, "height": 768})
        page.keyboard.press("/")
        page.keyboard.type("idle_timeout", delay=20)
        page.wait_for_selector(".md-search-result__item", timeout=120_000)
        assert not [url for url in asked if not url.startswith((address, "data:"))]
        assert not said
        browser.close()
