"""The settings of a run: one frozen record, each field of which declares a setting whole.

A field has the default, the kind of value (how text is read, and which values there are) and the meaning. How `--set`,
files and the environment are read, errors, and the table in docs/settings.md follow from the fields.

A value is found in this order: `--set KEY=VALUE`, the `[eddyline]` table of the file named by `--config`, the
environment variable EDDYLINE_KEY, the default. Text from all three is read by the same kind, so a setting means the
same wherever it was written. The command line only warns of variables EDDYLINE_X that are no setting
(`unknown_variables`): other programs may have set them.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Number
from os import PathLike
from pathlib import Path
from typing import TypeVar

from eddyline.errors import SettingError, shown
from eddyline.setting_kinds import (
    Kind,
    WrongValue,
    choice,
    decimal,
    did_you_mean,
    parse_size,
    plan_kind,
    seconds,
    whole,
)

_T = TypeVar("_T")
_MOST_ROWS = 2**31 - 1
AUTO_MEMORY = -1
"""The value of `memory=auto` until the run knows the host (runtime/running/memory_share.py)."""


def _setting(default: _T, kind: Kind, meaning: str) -> _T:
    """A field of `Settings` that can be set."""
    declared: _T = field(default=default, metadata={"kind": kind, "meaning": meaning})
    return declared


@dataclass(frozen=True)
class Settings:
    """The settings of one run. None stands for the word that a setting's values begin with: adaptive, auto, none.

    >>> parse(["router=random", "memory=200MB"]).memory
    200000000
    """

    router: str = _setting(
        "auto", choice("auto", "fixed", "random", "lottery", "rank", "benefit"), "how a packet's next step is chosen"
    )
    reroute_every: int = _setting(1000, whole("a number of tuples"), "tuples between two looks at a routing decision")
    packet: int | None = _setting(
        None,
        whole("a number of tuples", most=_MOST_ROWS, none="adaptive"),
        "tuples per packet (1: the per-tuple eddy)",
    )
    input_batch: int | None = _setting(
        None,
        whole("a number of rows", most=_MOST_ROWS, none="auto"),
        "rows of all streams taken in at a time; auto is the packet size where that is a number",
    )
    explore: float = _setting(
        0.08,
        decimal("a share from 0 to 1", "a share from 0 to 1", 1.0, zero=True),
        "how much of the work may go to trying other routes",
    )
    plan: str = _setting(
        "auto",
        plan_kind(),
        "which spans are materialised; an operator with ! leaves its selections to the operator above, "
        "one with + groups its tuples (docs/design/plans.md)",
    )
    optimizer: str = _setting(
        "auto", choice("auto", "off", "mjoin-init", "bjtree-init", "exhaustive"), "the algorithm that proposes plans"
    )
    optimize_when: str = _setting(
        "auto", choice("auto", "data", "memory", "refined"), "what makes the optimizer look for another plan"
    )
    migration: str = _setting(
        "auto", choice("auto", "moving-state", "parallel-track", "off"), "how a plan is changed while it runs"
    )
    execution: str = _setting(
        "unsynchronized", choice("unsynchronized", "semi", "total"), "how far queues may run apart"
    )
    memory: int | None = _setting(
        None,
        Kind("none, auto, a size such as 200MB", lambda t: AUTO_MEMORY if t == "auto" else parse_size(t), "none"),
        "the most memory that the state of a slot may take; auto is 40 % of the host's, divided by the slots; see spill"
        " for what happens above it",
    )
    spill: str = _setting(
        "auto",
        choice("auto", "off", "lazy-disk", "active-disk"),
        "what happens where state would take more than memory: off stops the job; otherwise partition groups of rows"
        " leave memory and stay on disk; with balance active-disk, and auto where that saves results, also make room"
        " for more productive ones elsewhere",
    )
    spill_policy: str = _setting(
        "productivity",
        choice("productivity", "inactive", "largest", "random", "most-productive"),
        "which groups leave memory first: by default those without new rows, then those with the fewest results per"
        " byte; the other orders are there to compare with",
    )
    spill_share: float = _setting(
        0.3,
        decimal("a share of memory above 0", "a share above 0 and up to 1", 1.0),
        "how much leaves memory at a time",
    )
    spill_delay: float | None = _setting(
        None,
        seconds(none="auto"),
        "how much later, in seconds of event time, a result may come because rows of it are on disk; auto is the"
        " smallest window, and the end of the streams if there is none",
    )
    spill_dir: str | None = _setting(
        None,
        Kind("the temporary folder, a folder", str, "the temporary folder"),
        "where a run without a checkpoint keeps its log, with the rows that leave memory",
    )
    cpu: float | None = _setting(
        None,
        decimal("a fraction of a core", "none or a fraction of a core such as 0.5", none="none"),
        "the CPU seconds per second of event time that a plan of the optimizer may take in each slot",
    )
    slots: int | None = _setting(
        None,
        whole("a number", most=4096, none="auto"),
        "how many slots share the work; auto is one locally, and the session's cores on Spark, followed with balance",
    )
    groups: int = _setting(256, whole("a number", most=65536), "partition groups in all, each of which is in one slot")
    balance: str = _setting(
        "off",
        choice("off", "auto", "moving-state", "parallel-track"),
        "whether partition groups move from slots with much load to others, by rows from the log (moving-state) or by"
        " both slots getting new rows until the old ones are out of all windows (parallel-track); auto takes the"
        " cheaper way. Unless off, slots share a key too heavy for one",
    )
    batch_rows: int | None = _setting(
        None,
        whole("a number of rows", most=_MOST_ROWS, none="auto"),
        "rows per micro-batch; auto adapts the number to batch_seconds",
    )
    batch_seconds: float = _setting(
        1.0,
        seconds(),
        "the seconds a batch of batch_rows=auto takes; twice as long, on Spark ten times, while nobody waits",
    )
    idle_timeout: float | None = _setting(
        None, seconds(none="none"), "how long a silent stream may hold the watermark back"
    )
    at_end: str | None = _setting(
        None,
        choice("auto", "flush", "keep", none="auto"),
        "whether results that wait for a watermark are given when all sources are read, or kept for the next run; "
        "auto keeps them where there is a checkpoint",
    )
    trigger: float | None = _setting(
        None,
        seconds(none="none"),
        "the time between the starts of two micro-batches, on Spark; with none they follow each other",
    )
    pause_ms: float | None = _setting(
        50.0,
        decimal("a number", "none or a number of milliseconds", zero=True, none="none"),
        "the longest a migration may hold output back at a time",
    )
    arena_dir: str | None = _setting(
        None,
        Kind("host memory, a folder", str, "host memory"),
        "where the state of slots lives, on Spark, and in the local engine with a checkpoint",
    )
    arena_limit: int | None = _setting(
        None, Kind("none, a size such as 200MB", parse_size, "none"), "how large one slot may become in arena_dir"
    )
    prefer: str | None = _setting(
        None, Kind("none, a condition", str, "none"), "rows of one stream or table with this condition come first"
    )
    estimates: str = _setting(
        "off", choice("off", "on"), "whether aggregates are estimated before their window or the input ends"
    )
    metrics_port: int | None = _setting(
        None,
        whole("a port", 0, 65535, "none"),
        "where metrics are served, on the loopback address; each run needs a port of its own, also in one process or"
        " Spark session",
    )
    seed: int = _setting(
        0, whole("a whole number", 0), "the seed of generated rows and of the routers random and lottery"
    )
    check: bool = False
    """Makes the eddy check every routing constraint at every step. For tests; not a setting that users have."""

    @property
    def has_groups(self) -> bool:
        """Whether the group of each row is known in memory: its rows can leave it, or move to another slot."""
        return self.may_spill or self.balance != "off"

    @property
    def may_spill(self) -> bool:
        """Whether groups of rows can leave memory."""
        return self.memory is not None and self.spill != "off"


@dataclass(frozen=True)
class Setting:
    """One row of the table of settings."""

    key: str
    kind: Kind
    default: str
    meaning: str


TABLE = tuple(
    Setting(f.name, f.metadata["kind"], f.metadata["kind"].text(f.default), f.metadata["meaning"])
    for f in fields(Settings)
    if f.metadata
)
_BY_KEY = {setting.key: setting for setting in TABLE}
_OWN_VARIABLES = ("EDDYLINE_DEBUG", "EDDYLINE_EXAMPLES", "EDDYLINE_FULL", "EDDYLINE_FUZZ_SEED", "EDDYLINE_GOLDEN")


def parse(
    assignments: Iterable[str] = (), config: str | Path | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings that `--set KEY=VALUE`..., a TOML file and the environment say together.

    >>> parse(["batch_rows=1000"], environ={"EDDYLINE_BATCH_ROWS": "7", "EDDYLINE_SEED": "3"}).seed
    3
    """
    found: dict[str, tuple[str, str]] = {}
    for name, value in (environ or {}).items():
        key = name.removeprefix("EDDYLINE_").lower()
        if name.startswith("EDDYLINE_") and key in _BY_KEY:
            found[key] = (value, name)
    for key, value in _from_toml(config).items() if config is not None else ():
        found[_known(key, str(config))] = (value, str(config))
    for assignment in assignments:
        key, sign, value = assignment.partition("=")
        if not sign:
            raise SettingError(f"--set {assignment}: write KEY=VALUE")
        found[_known(key.strip(), "--set")] = (value, "--set")
    return _build(found)


def unknown_variables(environ: Iterable[str]) -> list[str]:
    """Names of environment variables that look like ours and are not.

    >>> unknown_variables(["HOME", "EDDYLINE_SEED", "EDDYLINE_DEBUG", "EDDYLINE_BOGUS"])
    ['EDDYLINE_BOGUS']
    """
    known = {*_OWN_VARIABLES, *(f"EDDYLINE_{key.upper()}" for key in _BY_KEY)}
    return sorted(name for name in environ if name.startswith("EDDYLINE_") and name not in known)


def likely_variable(name: str) -> str | None:
    """The variable of a setting whose name is nearly the same, if there is one.

    >>> likely_variable("EDDYLINE_ROUTR"), likely_variable("EDDYLINE_BOGUS")
    ('EDDYLINE_ROUTER', None)
    """
    near = difflib.get_close_matches(name.removeprefix("EDDYLINE_").lower(), _BY_KEY, 1, cutoff=0.8)
    return f"EDDYLINE_{near[0].upper()}" if near else None


def from_mapping(values: Mapping[str, object]) -> Settings:
    """The settings of a Python dictionary; the environment and files are not looked at.

    >>> from_mapping({"router": "random", "packet": 64}).packet
    64
    """
    for key, value in values.items():
        if not (value is None or isinstance(value, str | Number | PathLike)):
            raise SettingError(f"setting {shown(key)}: a value is a text or a number, not {shown(value)}")
    return _build({_known(key, "settings"): (_text(value), "settings") for key, value in values.items()})


def _build(found: Mapping[str, tuple[str, str]]) -> Settings:
    settings = Settings()
    for key, (text, origin) in found.items():
        try:
            settings = replace(settings, **{key: _BY_KEY[key].kind.value(text.strip())})
        except WrongValue as wrong:
            raise SettingError(f"setting {key} (from {origin}): {wrong}") from None
    if settings.spill == "active-disk" and settings.balance == "off":
        raise SettingError("spill=active-disk makes room for groups that move between slots; set balance=auto too")
    return settings


def _known(key: str, origin: str) -> str:
    if key not in _BY_KEY:
        raise SettingError(f"there is no setting {key!r} (from {origin}){did_you_mean(key, _BY_KEY)}")
    return key


def _from_toml(path: str | Path) -> dict[str, str]:
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise SettingError(f"cannot read the settings in {path}: {why}") from None
    table = document.get("eddyline")
    if not isinstance(table, dict):
        raise SettingError(f"{path} has no [eddyline] table")
    return {key: _text(value) for key, value in table.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)
