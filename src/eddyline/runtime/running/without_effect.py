"""Settings that do nothing in a run, each with the reason in a sentence; `explain`, `validate` and the first lines of a
run say them.

A setting is looked at if it is not the default: then the user expects something of it. Each rule returns why its
setting does nothing, and an empty text where it may do something. Where a rule cannot know (`None` in RunKind), it says
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from eddyline.bound.model import BoundQuery
from eddyline.cql.script import parse
from eddyline.engine.groups.clusters import refusal as no_estimates
from eddyline.plan.grouped import refusal as no_groups
from eddyline.plan.partition import Partitioning, partition
from eddyline.plan.plan import Plan, plan_of
from eddyline.plan.spill_axis import SpillAxis, spill_axis
from eddyline.plan.tree import shape
from eddyline.runtime.running.job import Job
from eddyline.runtime.running.least_memory import is_far_below, small_memory
from eddyline.runtime.sources.python_source import PythonSource
from eddyline.setting_kinds import size_text
from eddyline.settings import TABLE, Settings

_GENERATORS = ("generate", "nexmark")
"""Formats whose rows follow from the seed."""


@dataclass(frozen=True)
class RunKind:
    """What is known of a run besides its query and its settings."""

    engine: Literal["local", "spark"]
    slots: int
    """The number of slots that it begins with."""
    checkpoint: bool | None = None
    follow: bool | None = None
    cores: int | None = None
    """The cores that the slots share; None: unknown, or on several hosts."""
    more_slots: bool = False
    """Whether slots may be added while the job runs."""
    waits: bool | None = None
    """Whether a source may be silent before its end."""
    generates: bool | None = None
    """Whether a source makes its rows from the seed."""

    @property
    def local(self) -> bool:
        """Whether it is on the local engine."""
        return self.engine == "local"

    def of(self, job: Job) -> RunKind:
        """The kind with what the sources of a job tell."""
        waits = any(isinstance(i.source, PythonSource) and not i.source.ends for i in job.inputs)
        formats = {declaration.format for declaration in parse(job.text).declarations}
        return replace(self, waits=waits, generates=not formats.isdisjoint(_GENERATORS))


@dataclass(frozen=True)
class _KnownRun:
    query: BoundQuery
    settings: Settings
    kind: RunKind

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.query, shape(self.settings.plan, [s.alias for s in self.query.sources]))

    @cached_property
    def axis(self) -> SpillAxis | None:
        return spill_axis(self.plan, self.settings.groups)

    @cached_property
    def partitioning(self) -> Partitioning:
        return partition(self.plan, self.kind.slots, self.settings.groups)

    @cached_property
    def no_axis(self) -> str:
        """Why no groups of rows leave memory or move."""
        if self.query.asks:
            return "rows that wait for a lookup table stay in their slot"
        return "" if self.axis is not None else "the query has no join, so there are no groups of rows"

    @cached_property
    def stays_in_memory(self) -> str:
        """Why no rows leave memory."""
        if self.settings.memory is None:
            return "memory is none, so no rows leave memory"
        return "spill is off, so no rows leave memory" if self.settings.spill == "off" else self.no_axis

    @cached_property
    def keeps_plan(self) -> str:
        """Why the plan never changes."""
        settings, sources = self.settings, len(self.query.sources)
        if settings.plan != "auto":
            return "the plan is fixed"
        if self.query.asks:
            return "a query with lookup tables keeps its plan"
        if settings.optimizer == "off":
            return "the optimizer is off"
        if sources < 2:
            return "the query has no join"
        if sources == 2 and (no_groups(self.query) is not None or settings.estimates == "on"):
            return "a join of two streams has one plan"
        return ""


def _balance(run: _KnownRun) -> str:
    kind, settings = run.kind, run.settings
    if run.no_axis:
        return run.no_axis
    if kind.slots < 2 and not kind.more_slots:
        return "there is one slot, and groups of rows move between slots" + ("; set slots too" if kind.local else "")
    if settings.groups < 2:
        return "there is one partition group"
    if kind.slots > 1:
        axes, axis = run.partitioning.axes, run.axis
        assert axis is not None
        if len(axes) > 1:
            sizes = " x ".join(str(one.size) for one in axes)
            return f"the slots are a grid of {sizes}, and groups of a grid do not move"
        if not run.partitioning.is_along(axis):
            return "rows are spread over the slots without a key by which groups could move"
    if kind.local and not kind.checkpoint and run.stays_in_memory:
        return "groups move by rows from the log, and a local run has a log only with --checkpoint or memory"
    return ""


def _slots(run: _KnownRun) -> str:
    slots, kind = run.kind.slots, run.kind
    if kind.local:
        if slots == 1:
            return ""
        return "the local engine works on one core, where slots take turns; --engine spark uses all cores"
    if kind.cores is None or slots <= kind.cores:
        return ""
    return f"there {'is one core' if kind.cores == 1 else f'are {kind.cores} cores'}, where slots take turns"


def _groups(run: _KnownRun) -> str:
    needs = run.kind.slots > 1 or run.kind.more_slots or run.kind.checkpoint is not False or not run.stays_in_memory
    return "" if needs else "there is one slot, and no rows leave memory"


def _memory(run: _KnownRun) -> str:
    why = "" if run.settings.spill == "off" else run.no_axis
    return why and f"{why}; the job stops where its state is larger"


def _spill(run: _KnownRun) -> str:
    if run.settings.memory is None:
        return "memory is none, so no rows leave memory"
    if run.settings.spill == "off":
        return ""
    if run.no_axis:
        return run.no_axis
    why = _balance(run) if run.settings.spill == "active-disk" else ""
    return f"it is lazy-disk here: {why}" if why else ""


def _spill_dir(run: _KnownRun) -> str:
    if not run.kind.local and not run.kind.checkpoint:
        return ""  # the log is there in any case
    return run.stays_in_memory


def _plan_keeps(run: _KnownRun) -> str:
    return run.keeps_plan


def _optimizer(run: _KnownRun) -> str:
    return "" if run.settings.optimizer == "off" else run.keeps_plan


def _migration(run: _KnownRun) -> str:
    fixed = run.settings.plan != "auto"
    return "" if fixed and run.kind.checkpoint is not False else run.keeps_plan  # an earlier run may have another plan


def _seed(run: _KnownRun) -> str:
    settings = run.settings
    if run.kind.generates is not False or settings.router in ("random", "lottery") or settings.spill_policy == "random":
        return ""
    return "no source and no router of this run uses it"


def _idle_timeout(run: _KnownRun) -> str:
    ends = run.kind.follow is False and run.kind.waits is False and run.kind.local
    flushes = run.settings.at_end == "flush" or (run.settings.at_end is None and run.kind.checkpoint is False)
    return "without --follow a stream that is read to its end holds nothing back" if ends and flushes else ""


def _trigger(run: _KnownRun) -> str:
    return "the local engine, other than Spark, begins a batch as soon as there are rows" if run.kind.local else ""


def _batch_seconds(run: _KnownRun) -> str:
    fixed = run.settings.batch_rows is not None and not run.query.asks
    hurried = run.kind.local and (run.kind.follow is not False or run.settings.idle_timeout is not None)
    return "batch_rows is a number" if fixed and not hurried else ""


def _at_end(run: _KnownRun) -> str:
    return "with --follow the streams do not end" if run.kind.follow else ""


def _arena_dir(run: _KnownRun) -> str:
    without = run.kind.local and run.kind.checkpoint is False
    return "the state of a local run without --checkpoint stays in its process" if without else ""


def _arena_limit(run: _KnownRun) -> str:
    in_process = run.kind.local and run.settings.arena_dir is None
    return _arena_dir(run) or ("without arena_dir the state of a local run stays in its process" if in_process else "")


def _estimates(run: _KnownRun) -> str:
    return no_estimates(run.query) or ""


def _explore(run: _KnownRun) -> str:
    return "" if run.settings.router == "auto" else "only router=auto tries other routes"


RULES: Mapping[str, Callable[[_KnownRun], str]] = {
    "explore": _explore,
    "optimizer": _optimizer,
    "optimize_when": _plan_keeps,
    "migration": _migration,
    "memory": _memory,
    "spill": _spill,
    "spill_policy": lambda run: run.stays_in_memory,
    "spill_share": lambda run: run.stays_in_memory,
    "spill_delay": lambda run: run.stays_in_memory,
    "spill_dir": _spill_dir,
    "cpu": _plan_keeps,
    "slots": _slots,
    "groups": _groups,
    "balance": _balance,
    "batch_seconds": _batch_seconds,
    "idle_timeout": _idle_timeout,
    "at_end": _at_end,
    "trigger": _trigger,
    "pause_ms": _migration,
    "arena_dir": _arena_dir,
    "arena_limit": _arena_limit,
    "estimates": _estimates,
    "seed": _seed,
}
"""By setting, why it does nothing in a run; empty if it may do something."""

_SAYS = {"slots": "makes the job no faster", "memory": "is only a limit"}
"""Where something else than that it does nothing is to be said of a setting."""


def without_effect(query: BoundQuery, settings: Settings, kind: RunKind) -> list[str]:
    """The settings that are not the default and do nothing in a run of this kind, each with the reason; and whether
    `memory` is too small to work in."""
    return [*_sentences(_KnownRun(query, settings, kind)), *small_memory(query, settings, kind.slots)]


def notes_of(job: Job, settings: Settings, kind: RunKind) -> tuple[list[str], bool]:
    """For the reporter of a run: `without_effect`, and whether memory is far below what the query needs."""
    if settings == Settings():
        return [], False
    return without_effect(job.query, settings, kind.of(job)), is_far_below(job.query, settings, kind.slots)


def _sentences(run: _KnownRun) -> Iterator[str]:
    plain = Settings()
    for setting in TABLE:
        value = getattr(run.settings, setting.key)
        if setting.key in RULES and value != getattr(plain, setting.key) and (why := RULES[setting.key](run)):
            shown = size_text(value) if setting.key in ("memory", "arena_limit") else setting.kind.text(value)
            yield f"{setting.key}={shown} {_SAYS.get(setting.key, 'does nothing')}: {why}"


def balance_line(query: BoundQuery, settings: Settings, kind: RunKind) -> str:
    """Whether partition groups move between slots, and why not, in one line."""
    off = settings.balance == "off"
    why = _balance(_KnownRun(query, replace(settings, balance="auto") if off else settings, kind))
    if off or why:
        does = f"balance is off{', and would do nothing' if why else ''}" if off else ""
        return f"groups of rows stay in their slots: {': '.join(text for text in (does, why) if text)}"
    return "groups of rows move from slots with much load to others"
