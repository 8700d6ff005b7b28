"""What people install: extras, metadata, the Dockerfile and the wheel are what the code, the docs and the files say."""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import eddyline
from eddyline.cli.parser import parser_of_commands
from tests.test_repo import ROOT, _files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = {name: [Requirement(line) for line in lines] for name, lines in PROJECT["optional-dependencies"].items()}
FOR_USERS = set(EXTRAS) - {"dev", "docs", "testing", "all"}
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_version_is_said_once() -> None:
    assert PROJECT["version"] == eddyline.__version__


def test_all_is_all_extras_of_users() -> None:
    (everything,) = EXTRAS["all"]
    assert everything.name == "eddyline" and everything.extras == FOR_USERS


def test_packages_of_extras_are_those_that_are_tested() -> None:
    """Every package is pinned in requirements.lock, in the range that its extra gives."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([a-z0-9._-]+)==([^ ]+)", text, re.MULTILINE))
    for one in [Requirement(line) for line in PROJECT["dependencies"]] + [r for e in FOR_USERS for r in EXTRAS[e]]:
        assert one.specifier.contains(pins[one.name.lower()]), one


def test_extras_that_are_named_exist() -> None:
    """In messages, docs and scripts."""
    named = set[str]()
    for path in _files():
        if path.suffix in (".py", ".md", "") and path.name != "pyproject.toml":
            for found in re.findall(r"eddyline\[([a-z,]+)\]", path.read_text(encoding="utf-8")):
                named |= set(found.split(","))
    assert named <= set(EXTRAS)
    page, _, _ = (ROOT / "docs/installation.md").read_text(encoding="utf-8").partition("## Is this machine")
    assert set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE)) == FOR_USERS | {"all"}


def test_dockerfile() -> None:
    """It copies files that exist and that reach Docker, installs extras and the Java that exist, and runs commands that
    the command line knows."""
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in ignored if line.startswith("!")]
    assert ignored[0] == "*"
    copied = [
        name for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()
    ]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert any(fnmatch.fnmatch(name, pattern) for pattern in sent), f"{name} is not in .dockerignore"
    assert set(sent) == set(copied)
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert set(extras.split(",")) <= FOR_USERS
    (java,) = re.findall(r"openjdk-\d+-jre-headless", DOCKERFILE)
    assert f"unpack .java {java}" in (ROOT / "run").read_text(encoding="utf-8")
    for version in re.findall(r"^FROM python:([0-9.]+)-", DOCKERFILE, re.MULTILINE):
        assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    commands = re.findall(r"eddyline ((?:run|doctor)[^>&\n]*)", DOCKERFILE)
    assert len(commands) == 3
    for words in commands:
        parser_of_commands().parse_args(words.split())


def test_docs_show_the_docker_commands_of_the_dockerfile() -> None:
    page = (ROOT / "docs/installation.md").read_text(encoding="utf-8")
    for command in re.findall(r"docker (?:build|run)[^\n]*", DOCKERFILE):
        assert command in page


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of the files of the repository, so that nothing else gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    for path in _files():
        name = path.relative_to(ROOT)
        if name.parts[0] in ("src", "pyproject.toml", "README.md", "LICENSE"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(path.read_bytes())
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder / "dist")]
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", *options, str(folder)], check=True)
    (built,) = (folder / "dist").iterdir()
    return built


@pytest.mark.long
def test_the_wheel_has_every_file(wheel: Path) -> None:
    """log4j2.properties, py.typed and the files of the dashboard too."""
    source = ROOT / "src"
    wanted = {str(p.relative_to(source)) for p in _files() if p.is_relative_to(source / "eddyline")}
    with zipfile.ZipFile(wheel) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == wanted
    assert {"eddyline/py.typed", "eddyline/spark/log4j2.properties"} <= wanted


@pytest.mark.long
def test_the_wheel_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """The packages that it needs are those of this environment: downloading them would take minutes."""
    venv.create(tmp_path / "own", with_pip=False, symlinks=True)
    python = tmp_path / "own" / "bin" / "python"
    (site,) = (tmp_path / "own" / "lib").glob("python*/site-packages")
    (site / "shared.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")))
    install = ["--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}

    def eddyline_(*arguments: str) -> str:
        command = [str(python.parent / "eddyline"), *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    assert eddyline_("--version") == f"eddyline {PROJECT['version']}\n"
    assert "42" in eddyline_("run", str(ROOT / "examples/filter.sql"), "--engine", "local", "--json").splitlines()[-1]
    found = {line.split()[1]: line.split(None, 2) for line in eddyline_("doctor", "--engine", "local").splitlines()}
    assert found["eddyline"][2].endswith(f"in {site / 'eddyline'}")
    assert found["packages"][0] == found["imports"][0] == found["kernels"][0] == "ok"
