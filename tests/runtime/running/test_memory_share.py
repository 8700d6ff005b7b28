"""`memory=auto`: the host's memory, limits of containers, the share of a slot."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from eddyline.cli.main import main
from eddyline.errors import SettingError
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.memory_share import FOLDER_SHARE, SHARE, usable_memory, with_memory
from eddyline.runtime.running.runner import LocalRunner
from eddyline.settings import AUTO_MEMORY, Settings, from_mapping
from eddyline.spark.checks import check_memory, slots_here

INSTALLED = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
AUTO = Settings(memory=AUTO_MEMORY)
JOIN = """
CREATE STREAM a (k BIGINT, ts TIMESTAMP) USING generate OPTIONS (rows 50, rate 10, k.domain '0..9') TIMESTAMP BY ts;
CREATE STREAM b (k BIGINT, ts TIMESTAMP) USING generate OPTIONS (rows 50, rate 10, k.domain '0..9') TIMESTAMP BY ts;
SELECT a.k FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k
"""


def _host(root: Path, groups: str, **limits: str) -> Path:
    """A folder that looks like / of a host with these control groups; the keys of `limits` are paths with _ for /."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups)
    for name, limit in limits.items():
        file = root / "sys/fs/cgroup" / name.replace("__", ".").replace("_", "/").replace("0", "_")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    return root


def test_a_host_without_limits(tmp_path: Path) -> None:
    assert usable_memory(tmp_path) == INSTALLED
    assert usable_memory(_host(tmp_path, "0::/user/me\n", user_me_memory__max="max", memory__max="max")) == INSTALLED
    assert 0 < usable_memory() <= INSTALLED


@pytest.mark.parametrize("limited", ["user_me_memory__max", "user_memory__max", "memory__max"])
def test_the_limit_of_any_group_above_the_process_counts(tmp_path: Path, limited: str) -> None:
    assert usable_memory(_host(tmp_path, "0::/user/me\n", **{limited: "5000000"})) == 5_000_000


def test_a_container_that_sees_the_name_of_its_group_outside(tmp_path: Path) -> None:
    assert usable_memory(_host(tmp_path, "0::/docker/abc\n", memory__max="7000000")) == 7_000_000


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    lines = "9:cpu,cpuacct:/x\n5:memory:/docker/abc\n0::/x\n"
    unlimited, limit = str(2**63 - 4096), "memory_memory__limit0in0bytes"
    host = _host(tmp_path, lines, **{limit: "9000000", "memory_docker_abc_memory__limit0in0bytes": unlimited})
    assert usable_memory(host) == 9_000_000


def test_slots_share_the_host(tmp_path: Path) -> None:
    assert with_memory(AUTO, 1, host=lambda: 1000).memory == 1000 * SHARE
    assert with_memory(AUTO, 4, host=lambda: 1000).memory == 1000 * SHARE / 4
    given = Settings(memory=77)
    assert with_memory(given, 4) is given and with_memory(Settings(), 4).memory is None


def test_arenas_fit_in_their_folder(tmp_path: Path) -> None:
    about = os.statvfs(tmp_path)
    size = about.f_frsize * about.f_blocks
    folder = str(tmp_path / "not" / "there")
    assert with_memory(AUTO, 2, folder, lambda: 100 * size).memory == int(FOLDER_SHARE * size / 2)
    assert with_memory(AUTO, 2, folder, lambda: 1000).memory == 1000 * SHARE / 2


@pytest.mark.parametrize("options", [{}, {"slots": 2}, {"slots": 2, "spill": "off"}])
def test_a_run_says_what_auto_stands_for(options: dict[str, object]) -> None:
    summary = LocalRunner(prepare(JOIN, out=io.StringIO()), from_mapping({"memory": "auto", **options})).run()
    share = int(SHARE * usable_memory() / (summary.plan.count("2 slots") + 1))
    assert summary.memory_limit == share
    assert ("for each slot)" in summary.plan) == ("spill" not in options)


def test_explain_says_it_for_both_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "join.sql"
    script.write_text(JOIN)
    for engine in ("local", "spark"):
        assert main(["explain", str(script), "--engine", engine, "--set", "memory=auto"]) == 0
        assert "where it is full (" in capsys.readouterr().out


def test_json_has_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "join.sql"
    script.write_text(JOIN)
    for options, limit in (([], None), (["--set", "memory=3MB"], 3_000_000)):
        assert main(["run", str(script), "--engine", "local", "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["memory_limit"] == limit


def test_a_cluster_needs_a_size() -> None:
    assert slots_here("local[*, 4]") == slots_here("local[*]") == os.cpu_count()
    assert slots_here("local-cluster[2,1,1024]") is None
    check_memory(AUTO, "local[2]")
    check_memory(Settings(memory=5), "yarn")
    with pytest.raises(SettingError, match=r"^memory=auto is a share of this host's memory; set a size, as yarn"):
        check_memory(AUTO, "yarn")
