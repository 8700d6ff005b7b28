"""What mkdocs does while it builds the site: pages from outside docs/, and links to them.

Pages are written for two readers: people who look at the files of the repository, and the site. A link from a page to
a file outside docs/ is right in the repository; here it becomes a link to the page or file that the site has of it.
A link to a file that the site does not have is left as it is, and the strict build refuses it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "examples/README.md": "examples.md",
    "lab/peers.md": "lab/peers.md",
    "lab/performance.md": "lab/performance.md",
    "lab/reproduce.md": "lab/reproduce.md",
}
"""Pages outside docs/, and what they are called in the site."""
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_TITLE = re.compile(r"^# (.*)", re.MULTILINE)
_CODE_IN_TABLE = re.compile(r"`[^`]*`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside docs/, the pictures of the laboratory, and the examples as they are."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    for picture in sorted((ROOT / "lab/figures").glob("*.png")):
        files.append(File.generated(config, f"lab/figures/{picture.name}", abs_src_path=str(picture)))
    for example in sorted((ROOT / "examples").iterdir()):
        if example.suffix in (".sql", ".py", ".ipynb", ".yaml"):
            files.append(File.generated(config, f"examples/{example.name}", abs_src_path=str(example)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files, **_: Any) -> str:
    """The page with links for the site, and tables as Python-Markdown reads them."""
    inside = {source: name for name, source in PAGES.items()}
    name = inside.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    lines = [_pipes(line) if line.startswith("|") else line for line in markdown.split("\n")]
    return _LINK.sub(lambda link: _moved(link, name, page.file.src_uri), "\n".join(lines))


def _moved(link: re.Match[str], name: str, source: str) -> str:
    """A link of the page that is the file `name` of the repository and `source` in the site."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link[2]))
    anchor = link[3] if link[3] and target != "README.md" else ""
    target = {"README.md": "docs/index.md", "examples": "examples/README.md"}.get(target, target)
    found = PAGES.get(target, target.removeprefix("docs/"))
    text = link[1]
    if re.fullmatch(r"[\w/.-]+\.md", text) and (ROOT / target).is_file():  # in the site a page is known by its title
        title = _TITLE.search((ROOT / target).read_text(encoding="utf-8"))
        text = title[1] if title else text
    return f"[{text}]({posixpath.relpath(found, posixpath.dirname(source) or '.')}{anchor})"


def _pipes(row: str) -> str:
    """A row of a table. In code, GitHub wants a pipe escaped and Python-Markdown shows the backslash."""
    return _CODE_IN_TABLE.sub(lambda code: code[0].replace("\\|", "|"), row)
