"""Metrics: the names that docs/cluster.md lists are served while a run lasts, separately for each run."""

from __future__ import annotations

import urllib.error
import urllib.request

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from eddyline.errors import SettingError
from eddyline.runtime.reporting.metrics import Metrics
from eddyline.runtime.reporting.summary import Progress
from eddyline.spill.accounts import TABLE, Spillable
from eddyline.spill.group_table import GroupTable


def asked(port: int | None) -> dict[str, float]:
    """The served values, by name; each has a line of help."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    assert all(family.documentation for family in families)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_names_and_values() -> None:
    progress = Progress(
        3,
        2,
        1,
        0,
        7,
        640,
        5,
        1.5,
        2_500_000,
        groups_on_disk=4,
        log_bytes=900,
        groups_left=6,
        spilled_rows=60,
        results_behind_us=1_500_000,
        slots_rebuilt=3,
        backlog_rows=9,
    )
    with Metrics(0, lambda: progress, more=lambda: {"spark_addBatch_seconds": 0.25}) as metrics:
        found = asked(metrics.port)
        assert found == {
            "eddyline_rows_in": 3, "eddyline_rows_out": 2, "eddyline_rows_late": 1, "eddyline_rows_dead": 0,
            "eddyline_batches": 5, "eddyline_state_rows": 7, "eddyline_memory_bytes": 640, "eddyline_seconds": 1.5,
            "eddyline_groups_left": 6, "eddyline_spilled_rows": 60, "eddyline_sweeps": 0, "eddyline_sweep_results": 0,
            "eddyline_groups_on_disk": 4, "eddyline_log_bytes": 900, "eddyline_results_behind_seconds": 1.5,
            "eddyline_slots_rebuilt": 3, "eddyline_backlog_rows": 9,
            "eddyline_watermark": 2.5, "eddyline_spark_addBatch_seconds": 0.25,
        }  # fmt: skip
        progress = Progress(rows_in=4)
        assert asked(metrics.port)["eddyline_rows_in"] == 4
        assert "eddyline_watermark" not in asked(metrics.port), "not known yet"


def test_two_runs_do_not_mix_and_end_with_their_context() -> None:
    with Metrics(0, lambda: Progress(rows_in=1)) as one, Metrics(0, lambda: Progress(rows_in=2)) as other:
        assert [asked(metrics.port)["eddyline_rows_in"] for metrics in (one, other)] == [1, 2]
        with pytest.raises(SettingError, match=f"^metrics_port: cannot listen on port {one.port}: Address already"):
            Metrics(one.port, Progress).__enter__()
    with pytest.raises(urllib.error.URLError):
        asked(one.port)


def test_without_a_port_nothing_is_served() -> None:
    with Metrics(None, Progress) as metrics:
        assert metrics.port is None


def test_partition_groups() -> None:
    table = np.array([(3, 10, 100, 1.5, 4, 0)], TABLE)
    groups = GroupTable((Spillable(table.tobytes()),), frozenset([9]))
    with Metrics(0, Progress, lambda: groups) as metrics:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as response:
            families = list(text_string_to_metric_families(response.read().decode()))
        found = {(s.name, s.labels["group"]): s.value for f in families for s in f.samples if s.labels}
    assert found == {
        ("eddyline_group_rows", "3"): 10, ("eddyline_group_rows", "9"): 0,
        ("eddyline_group_bytes", "3"): 100, ("eddyline_group_bytes", "9"): 0,
        ("eddyline_group_results", "3"): 1.5, ("eddyline_group_results", "9"): 0,
        ("eddyline_group_on_disk", "3"): 0, ("eddyline_group_on_disk", "9"): 1,
        ("eddyline_group_idle_batches", "3"): 4,
    }  # fmt: skip
