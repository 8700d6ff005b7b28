"""What the doctor says of broken machines: always a line for each thing, never a traceback."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from eddyline.cli import doctor, doctor_machine, doctor_packages, doctor_spark
from eddyline.cli.doctor_packages import Requirement, read
from eddyline.cli.finding import Finding
from eddyline.cli.main import main
from eddyline.extras import install
from eddyline.settings import Settings
from tests.support.pages import ROOT

DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOR_DEVELOPERS = {"dev", "docs", "testing", "all"}


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requirements are those of pyproject.toml, not of whatever was installed earlier."""
    lines = list(DECLARED["dependencies"])
    for extra, of_extra in DECLARED["optional-dependencies"].items():
        lines += [f'{line}; extra == "{extra}"' for line in of_extra]
    found = [r for line in lines if (r := read(line)).package != "eddyline"]
    for module in (doctor_packages, doctor_spark):
        monkeypatch.setattr(module, "requirements", lambda: found)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading the real packages takes a second; `test_without_packages` and the test of the wheel do."""
    monkeypatch.setattr(doctor_packages, "_MODULES", ("json",))


def diagnose(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and the checks by name."""
    status = main(["doctor", "--json", *arguments])
    said = capsys.readouterr()
    assert said.err == ""
    told = json.loads(said.out)
    assert told["ok"] == (status == 0)
    return status, {check["name"]: check for check in told["checks"]}


@pytest.mark.usefixtures("declared")
def test_this_machine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """It runs the tests, so nothing that they need is missing."""
    status, found = diagnose(capsys, "--checkpoint", str(tmp_path / "new" / "checkpoint"))
    assert status == 0
    assert {"Python", "packages", "imports", "kernels", "Java", "pyspark", "cores", "memory"} <= set(found)
    assert {"shared memory", "temporary", "checkpoint", "files", "loopback", "encoding", "time zone"} <= set(found)
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("declared")
def test_without_java(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    status, found = diagnose(capsys)
    assert status == 1
    assert found["Java"]["state"] == "missing" and "apt-get install openjdk" in found["Java"]["todo"]
    status, found = diagnose(capsys, "--engine", "local")
    assert status == 0 and found["Java"]["state"] == "optional"


@pytest.mark.parametrize(
    ("says", "state", "text"),
    [
        ('openjdk version "17.0.12" 2024-07-16', "ok", "17.0.12"),
        ('openjdk version "21" 2023-09-19', "ok", "21"),
        ('java version "1.8.0_392"', "wrong", "8 ("),
        ("segmentation fault", "wrong", "does not run: segmentation fault"),
        ("", "wrong", "it says nothing"),
    ],
)
def test_kinds_of_java(says: str, state: str, text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,) = doctor_spark.java()
    assert (found.state, text in found.text) == (state, True), found
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nothing"))
    (found,) = doctor_spark.java()
    assert found.state == "missing" and "has no bin/java" in found.text


def test_variables_of_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "no-such-python")
    found = {f.name: f for f in doctor_spark.pyspark()}
    assert found["SPARK_HOME"].state == found["PYSPARK_PYTHON"].state == "wrong"
    (tmp_path / "jars").mkdir()
    monkeypatch.setenv("PYSPARK_PYTHON", str(shutil.which("sh")))
    found = {f.name: f for f in doctor_spark.pyspark()}
    assert found["SPARK_HOME"].state == found["PYSPARK_PYTHON"].state == "warn"


def test_packages_that_are_absent_or_of_other_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    def declares(*lines: str) -> None:
        monkeypatch.setattr(doctor_packages, "requirements", lambda: [read(line) for line in lines])

    declares("numpy>=2.2,<3", "no-such-package>=1,<2", "pyarrow>=999", 'also-absent[x]>=3; extra == "kafka"')
    found = {f.name: f for f in doctor_packages.packages()}
    assert found["packages"].text.startswith("numpy 2.")
    assert found["no-such-package"].state == "missing"
    assert found["no-such-package"].todo == "pip install 'no-such-package>=1,<2'"
    assert found["pyarrow"].state == "wrong" and "is not >=999" in found["pyarrow"].text
    (extra,) = doctor_packages.extras()
    assert (extra.name, extra.state, extra.todo) == ("kafka", "optional", install("kafka"))
    assert "no also-absent" in extra.text
    declares()
    (unknown,) = doctor_packages.packages()
    assert unknown.state == "warn"


@pytest.mark.parametrize(
    ("versions", "version", "fits"),
    [
        ("<3,>=2.2", "2.2", True),
        ("<3,>=2.2", "2.2.0rc1", True),
        ("<3,>=2.2", "2.1.9", False),
        ("<3,>=2.2", "3", False),
        ("<4.4,>=4.3", "4.3.11", True),
        ("", "1", True),
    ],
)
def test_ranges(versions: str, version: str, fits: bool) -> None:
    assert Requirement("p", versions).fits(version) == fits


def test_every_extra_of_users_is_told() -> None:
    assert set(doctor_packages._PURPOSES) == set(DECLARED["optional-dependencies"]) - FOR_DEVELOPERS


def test_modules_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, said in {"no_such_module": "ModuleNotFoundError", "os; os._exit(9)": "ended with status 9"}.items():
        monkeypatch.setattr(doctor_packages, "_MODULES", (name,))
        (found,) = doctor_packages.loading()
        assert found.state == "wrong" and said in found.text


def test_kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    (found,) = doctor_packages.kernels()
    assert found.state == "ok" and "not compiled yet" in found.text
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/proc/nowhere")
    (found,) = doctor_packages.kernels()
    assert found.state == "warn" and "NUMBA_CACHE_DIR" in found.todo


def test_small_and_unwritable_folders(
    small_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (found,) = doctor_machine.shared_memory(Settings(arena_dir=str(small_folder / "arenas")))
    assert found.state == "warn" and "4.194 MB" in found.text and "--shm-size" in found.todo
    (small_folder / "filler").write_bytes(b"x" * (1 << 22))
    (found,) = doctor_machine.shared_memory(Settings(arena_dir=str(small_folder)))
    assert found.state == "wrong" and "No space left" in found.text
    (found,) = doctor_machine.shared_memory(Settings(arena_dir="/proc/eddyline"))
    assert found.state == "wrong" and "cannot be written" in found.text


def test_a_checkpoint_elsewhere_and_no_temporary_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(doctor_machine.tempfile, "gettempdir", nowhere)
    temporary, spill, checkpoint = doctor_machine.disk(Settings(spill_dir="/dev/null/x"), "s3://bucket/job")
    assert (temporary.state, spill.state, checkpoint.state) == ("missing", "wrong", "warn")


def test_cores_of_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"proc/self/cgroup": "0::/x\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (found,) = doctor_machine.cores(tmp_path)
    assert found.state == "warn" and found.text.startswith("0.5 of ")


def test_limits_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_machine.resource, "getrlimit", lambda which: (256, 524288))
    found = {f.name: f for f in doctor_machine.limits()}
    assert found["files"].state == "warn" and found["files"].todo.startswith("ulimit")
    with socket.create_server(("127.0.0.1", 0)) as server:
        found = {f.name: f for f in doctor_machine.network(Settings(metrics_port=server.getsockname()[1]))}
    assert found["loopback"].state == "ok" and found["metrics_port"].state == "wrong"


def test_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("EDDYLINE_ROUTR", "x")
    (found,) = doctor_machine.variables(None)
    assert found.state == "warn" and "EDDYLINE_ROUTER" in found.todo
    status, checks = diagnose(capsys, "--set", "slots=many")
    assert status == 1 and "slots" in checks["settings"]["text"]


def test_an_unknown_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--engine", "flink"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_check_that_breaks_is_a_line() -> None:
    def broken() -> list[Finding]:
        raise RuntimeError("no\nluck")

    (found,) = doctor.find({"x": broken}, "spark")  # type: ignore[dict-item]
    assert found.state == "warn" and str(found).count("\n") == 0 and "RuntimeError: no luck" in str(found)


def test_spark_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (found,) = doctor_spark.starts()
    assert found.state == "wrong" and "Spark needs Java 17" in found.text


@pytest.mark.long
def test_spark_starts() -> None:
    (found,) = doctor_spark.starts()
    assert found.state == "ok", found


def test_without_packages(tmp_path: Path) -> None:
    """A Python that has nothing but the source of Eddyline."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from eddyline.cli.main import main; sys.exit(main(['doctor']))"
    (tmp_path / "eddyline").symlink_to(ROOT / "src" / "eddyline")  # beside it may be what an installation left
    command = [sys.executable, "-S", "-c", code, str(tmp_path)]
    environment = {"PATH": str(tmp_path), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr == ""
    found = {line.split()[1]: line.split(None, 2) for line in done.stdout.splitlines()}
    assert found["packages"][0] == "warn" and "runs from a folder" in found["packages"][2]
    assert (
        found["pyspark"][0] == "missing"
        and "pip install -e '.[spark]' in the checkout of Eddyline, or use --engine local" in found["pyspark"][2]
    )
    assert found["Java"][0] == "missing" and found["cores"][0] == "ok"
