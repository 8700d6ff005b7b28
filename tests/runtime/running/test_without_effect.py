"""Settings that do nothing: each with its reason, and only where they do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.bound.bind import bind
from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.runtime.running.job import prepare
from eddyline.runtime.running.least_memory import is_far_below, least_memory
from eddyline.runtime.running.without_effect import RULES, RunKind, balance_line, without_effect
from eddyline.settings import TABLE, Settings, from_mapping

STREAMS = "".join(
    f"CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, j BIGINT, s VARCHAR) USING csv OPTIONS (path '{name}')"
    " TIMESTAMP BY ts;"
    for name in "abc"
)
ONE = "SELECT a.k FROM a"
JOIN = "SELECT a.s FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k"
THREE = "SELECT a.s FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE], c [RANGE 1 MINUTE] WHERE a.k = b.k AND b.k = c.k"
CHAIN = THREE.replace("b.k = c.k", "b.j = c.j")
CROSS = "SELECT a.s FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE]"
ASKED = (
    "CREATE TABLE t (k BIGINT, x VARCHAR) USING sqlite OPTIONS (path 't.db', table 't') INDEX ON (k);"
    "SELECT a.s, t.x FROM a [RANGE 1 MINUTE], t WHERE a.k = t.k"
)
COUNT = "SELECT a.k, COUNT(*) AS n FROM a [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY a.k"
PAIRS = COUNT.replace("FROM a", "FROM b [RANGE 1 MINUTE SLIDE 1 MINUTE], a").replace("GROUP", "WHERE a.k = b.k GROUP")

LOCAL = RunKind("local", 1, checkpoint=False, follow=False, waits=False, generates=False)
KEPT = RunKind("local", 1, checkpoint=True, follow=False, waits=False, generates=False)
SPARK = RunKind("spark", 2, checkpoint=True, follow=False, cores=4, waits=False, generates=False)


def query_of(text: str) -> BoundQuery:
    return bind(parse(STREAMS + text), lambda declaration: pa.schema(declaration.columns or ()))


def said(query: str, kind: RunKind, **settings: Any) -> list[str]:
    chosen = from_mapping(settings)
    slots = {} if chosen.slots is None else {"slots": chosen.slots}
    bound = query_of(query)
    return without_effect(bound, chosen, RunKind(**{**vars(kind), **slots}))


NO_JOIN = "the query has no join, so there are no groups of rows"
NO_LOG = "groups move by rows from the log, and a local run has a log only with --checkpoint or memory"
LOOKUP = "rows that wait for a lookup table stay in their slot"
IN_PROCESS = "the state of a local run without --checkpoint stays in its process"
NONE = "memory is none, so no rows leave memory"
SPILL_OFF = "spill is off, so no rows leave memory"


@pytest.mark.parametrize(
    ("query", "kind", "settings", "sentence"),
    [
        (ONE, KEPT, {"balance": "auto"}, f"balance=auto does nothing: {NO_JOIN}"),
        (ASKED, SPARK, {"balance": "auto"}, f"balance=auto does nothing: {LOOKUP}"),
        (JOIN, KEPT, {"balance": "auto"}, "there is one slot, and groups of rows move between slots; set slots too"),
        (JOIN, SPARK, {"balance": "auto", "slots": 1}, "there is one slot, and groups of rows move between slots"),
        (JOIN, LOCAL, {"balance": "auto", "slots": 2}, f"balance=auto does nothing: {NO_LOG}"),
        (JOIN, LOCAL, {"balance": "auto", "slots": 2, "memory": "1GB", "spill": "off"}, NO_LOG),
        (JOIN, SPARK, {"balance": "auto", "groups": 1}, "balance=auto does nothing: there is one partition group"),
        (CHAIN, SPARK, {"balance": "auto", "slots": 16}, "the slots are a grid of 4 x 4, and groups of a grid do not"),
        (CROSS, SPARK, {"balance": "parallel-track"}, "rows are spread over the slots without a key by which groups"),
        (JOIN, LOCAL, {"slots": 4}, "slots=4 makes the job no faster: the local engine works on one core"),
        (JOIN, SPARK, {"slots": 8}, "slots=8 makes the job no faster: there are 4 cores, where slots take turns"),
        (JOIN, RunKind("spark", 2, cores=1), {"slots": 2}, "there is one core, where slots take turns"),
        (ONE, LOCAL, {"memory": "1GB"}, f"memory=1 GB is only a limit: {NO_JOIN}; the job stops where its state is"),
        (ASKED, LOCAL, {"memory": "1GB"}, f"memory=1 GB is only a limit: {LOOKUP}"),
        (JOIN, LOCAL, {"spill": "lazy-disk"}, f"spill=lazy-disk does nothing: {NONE}"),
        (ONE, LOCAL, {"memory": "1GB", "spill": "lazy-disk"}, f"spill=lazy-disk does nothing: {NO_JOIN}"),
        (
            JOIN,
            SPARK,
            {"memory": "1GB", "spill": "active-disk", "balance": "auto", "slots": 1},
            "spill=active-disk does nothing: it is lazy-disk here: there is one slot",
        ),
        (JOIN, LOCAL, {"spill_policy": "largest"}, f"spill_policy=largest does nothing: {NONE}"),
        (
            JOIN,
            LOCAL,
            {"spill_share": 0.5, "memory": "1GB", "spill": "off"},
            SPILL_OFF,
        ),
        (ONE, LOCAL, {"spill_delay": 60, "memory": "1GB"}, f"spill_delay=60 does nothing: {NO_JOIN}"),
        (JOIN, LOCAL, {"spill_dir": "/tmp"}, f"spill_dir=/tmp does nothing: {NONE}"),
        (JOIN, SPARK, {"spill_dir": "/tmp"}, f"spill_dir=/tmp does nothing: {NONE}"),
        (
            THREE,
            LOCAL,
            {"optimize_when": "data", "plan": "mjoin"},
            "data does nothing: the plan is fixed",
        ),
        (THREE, LOCAL, {"cpu": 0.5, "optimizer": "off"}, "cpu=0.5 does nothing: the optimizer is off"),
        (THREE, LOCAL, {"migration": "off", "plan": "mjoin"}, "migration=off does nothing: the plan is fixed"),
        (JOIN, LOCAL, {"migration": "moving-state"}, "migration=moving-state does nothing: a join of two streams has"),
        (ONE, LOCAL, {"pause_ms": 7}, "pause_ms=7 does nothing: the query has no join"),
        (
            ASKED,
            KEPT,
            {"optimizer": "exhaustive"},
            "a query with lookup tables keeps its plan",
        ),
        (PAIRS, LOCAL, {"optimizer": "exhaustive", "estimates": "on"}, "a join of two streams has one plan"),
        (THREE, LOCAL, {"explore": 0.2, "router": "rank"}, "explore=0.2 does nothing: only router=auto tries other"),
        (JOIN, LOCAL, {"seed": 3}, "seed=3 does nothing: no source and no router of this run uses it"),
        (JOIN, LOCAL, {"groups": 16}, "groups=16 does nothing: there is one slot, and no rows leave memory"),
        (
            JOIN,
            LOCAL,
            {"idle_timeout": 5},
            "idle_timeout=5 does nothing: without --follow",
        ),
        (JOIN, LOCAL, {"trigger": 5}, "trigger=5 does nothing: the local engine, other than Spark, begins a batch"),
        (JOIN, SPARK, {"batch_rows": 9, "batch_seconds": 5}, "batch_seconds=5 does nothing: batch_rows is a number"),
        (JOIN, RunKind("spark", 2, True, True), {"at_end": "flush"}, "at_end=flush does nothing: with --follow the"),
        (JOIN, LOCAL, {"arena_dir": "/tmp"}, f"arena_dir=/tmp does nothing: {IN_PROCESS}"),
        (JOIN, LOCAL, {"arena_limit": "1GB"}, f"arena_limit=1 GB does nothing: {IN_PROCESS}"),
        (
            JOIN,
            KEPT,
            {"arena_limit": "1GB"},
            "without arena_dir the state of a local run stays",
        ),
        (JOIN, LOCAL, {"estimates": "on"}, "estimates=on does nothing: the query has no aggregates"),
    ],
)
def test_a_setting_that_does_nothing_says_why(
    query: str, kind: RunKind, settings: dict[str, Any], sentence: str
) -> None:
    assert any(sentence in one for one in said(query, kind, **settings)), said(query, kind, **settings)


@pytest.mark.parametrize(
    ("query", "kind", "settings"),
    [
        (JOIN, SPARK, {"balance": "auto", "slots": 4}),
        (JOIN, RunKind("spark", 1, more_slots=True), {"balance": "auto"}),
        (JOIN, SPARK, {"memory": "1GB", "spill": "active-disk", "balance": "auto", "spill_policy": "largest"}),
        (JOIN, LOCAL, {"memory": "1GB", "spill_share": 0.5, "spill_delay": 9, "spill_dir": "/tmp", "groups": 16}),
        (JOIN, RunKind("spark", 2, checkpoint=False), {"spill_dir": "/tmp", "groups": 16, "trigger": 5}),
        (THREE, LOCAL, {"optimize_when": "data", "cpu": 0.5, "migration": "off", "pause_ms": 9, "explore": 0.1}),
        (THREE, KEPT, {"plan": "((a b) c)", "migration": "moving-state"}),  # an earlier run may have had another plan
        (PAIRS, LOCAL, {"optimizer": "exhaustive"}),
        (PAIRS, LOCAL, {"estimates": "on"}),
        (JOIN, LOCAL, {"seed": 3, "router": "lottery"}),
        (JOIN, RunKind("local", 1, generates=True), {"seed": 3}),
        (JOIN, RunKind("local", 1, True, True), {"idle_timeout": 5, "batch_rows": 9, "batch_seconds": 5}),
        (JOIN, RunKind("local", 1, False, False, waits=True), {"idle_timeout": 5}),
        (JOIN, KEPT, {"idle_timeout": 5, "arena_dir": "/tmp", "arena_limit": "1GB", "groups": 16}),
        (ASKED, LOCAL, {"batch_rows": 9, "batch_seconds": 5}),
        (JOIN, RunKind("local", 1), {"idle_timeout": 5, "groups": 16, "arena_dir": "/tmp", "seed": 3}),  # not known
    ],
)
def test_nothing_is_said_of_settings_that_may_do_something(query: str, kind: RunKind, settings: dict[str, Any]) -> None:
    assert said(query, kind, **settings) == []


def test_nothing_is_said_of_defaults() -> None:
    for query in (ONE, JOIN, CHAIN, CROSS, ASKED, PAIRS):
        assert said(query, LOCAL) == said(query, SPARK) == []


def test_balance_on_a_local_run_with_a_log_works() -> None:
    for kind, settings in ((KEPT, {}), (LOCAL, {"memory": "1GB"})):
        sentences = said(JOIN, kind, balance="auto", slots=2, **settings)
        assert [s.split(" ")[0] for s in sentences] == ["slots=2"]


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"slots": 2, "balance": "auto"}, "groups of rows move from slots with much load to others"),
        ({"slots": 2}, "groups of rows stay in their slots: balance is off"),
        ({"groups": 1}, "groups of rows stay in their slots: balance is off, and would do nothing: there is one part"),
        ({"groups": 1, "balance": "auto"}, "groups of rows stay in their slots: there is one partition group"),
    ],
)
def test_explain_says_whether_groups_move(settings: dict[str, Any], line: str) -> None:
    assert balance_line(query_of(JOIN), from_mapping(settings), SPARK).startswith(line)


def test_a_memory_that_is_too_small_to_work_in() -> None:
    (sentence,) = said(JOIN, LOCAL, memory="100KB")
    assert sentence.startswith("memory=100 KB is too small to work in: batches have few rows, and most of the time")
    assert sentence.endswith("this query needs about 2.9 MB for each slot")
    query = query_of(JOIN)
    assert said(JOIN, LOCAL, memory=str(least_memory(query, 1))) == []
    assert said(JOIN, LOCAL, memory="100KB", spill="off") == []  # the job stops there
    assert least_memory(query, 1) > least_memory(query, 8)
    assert least_memory(query_of(JOIN.replace("a.s", "a.s, a.j, b.s, b.j")), 1) > least_memory(query, 1)
    assert [is_far_below(query, from_mapping({"memory": m}), 1) for m in ("100KB", "1MB", "9MB")] == [
        True,
        False,
        False,
    ]
    assert not is_far_below(query, Settings(), 1)


def test_every_setting_has_a_rule_or_always_does_something() -> None:
    """A new setting is put on one of the two lists by somebody who knows."""
    always = {"router", "reroute_every", "packet", "input_batch", "plan", "execution", "batch_rows", "prefer"}
    assert RULES.keys() | always | {"metrics_port"} == {setting.key for setting in TABLE}
    assert not RULES.keys() & always


def test_a_run_from_python_reports_it() -> None:
    rows = pa.table({"ts": pa.array([1, 2], pa.timestamp("us")), "k": [1, 2]})
    query = "SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k"
    streams = {name: el.stream(rows, time="ts") for name in "ab"}
    run = el.query(query, streams=streams).start(settings={"slots": 2, "memory": "100KB"})
    summary = run.wait()
    assert [warning.split(" ")[0] for warning in summary.warnings] == ["slots=2", "memory=100"]
    assert run.progress().little_memory


def test_what_sources_tell(tmp_path: Path) -> None:
    made = "CREATE STREAM g (ts TIMESTAMP, k BIGINT) USING generate OPTIONS (rows '9', rate '1') TIMESTAMP BY ts;"
    assert LOCAL.of(prepare(f"{made} SELECT g.k FROM g", seed=1)).generates
    (tmp_path / "a.csv").write_text("2026-01-01,1\n")
    read = f"CREATE STREAM a (ts TIMESTAMP, k BIGINT) USING csv OPTIONS (path '{tmp_path}') TIMESTAMP BY ts;"
    kind = LOCAL.of(prepare(f"{read} SELECT a.k FROM a", seed=1))
    assert not kind.generates and not kind.waits
