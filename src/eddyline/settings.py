"""The settings of a run: one table, one frozen record, refused in one line when wrong or not built yet.

A value is found in this order: `--set KEY=VALUE`, the `[eddyline]` table of the file named by `--config`, the
environment variable EDDYLINE_KEY, the default. Text from all three goes through the same parser, so a setting means
the same wherever it was written. A key is in `TABLE` from the day the interface names it; until its mechanism exists
its parser is None and any value but the one that is true without it is refused, so that nobody believes that a setting
had an effect. Of variables EDDYLINE_X that are no setting the command line warns (`unknown_variables`): the
environment may hold those of other programs.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Number
from os import PathLike
from pathlib import Path
from sys import float_info
from typing import Any

from eddyline.errors import SettingError, shown

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True)
class Settings:
    """What a run may be told. `check` makes the eddy check every routing constraint at every step (tests).

    >>> parse(["router=random", "memory=200MB"]).memory
    200000000
    """

    router: str = "auto"
    packet: int | None = None
    """Tuples per packet; None: adaptive."""
    reroute_every: int = 1000
    input_batch: int | None = None
    """Rows taken in from all streams in one go; None: adaptive, or the packet size where that is fixed."""
    plan: str = "auto"
    optimizer: str = "auto"
    optimize_when: str = "auto"
    execution: str = "unsynchronized"
    migration: str = "auto"
    pause_ms: float | None = 50.0
    """Milliseconds that a migration may hold results back at a time; None: as long as it takes."""
    cpu: float | None = None
    """CPU seconds per second of event time that a plan may take; None: no limit."""
    explore: float = 0.08
    seed: int = 0
    slots: int | None = None
    """Slots that share the work; None: one in the local engine."""
    groups: int = 256
    """Partition groups, of which each slot has some."""
    memory: int | None = None
    batch_rows: int = 65536
    batch_rows_auto: bool = True
    """Make batches smaller than `batch_rows` while they take longer than `batch_seconds`."""
    batch_seconds: float = 1.0
    idle_timeout: float | None = None
    """Seconds that a silent stream may hold the watermark back; None: for ever."""
    at_end: str | None = None
    """flush or keep; None: keep with a checkpoint, flush without."""
    trigger: float | None = None
    """Seconds between the starts of two micro-batches (Spark); None: as soon as there is something."""
    arena_dir: str | None = None
    arena_limit: int | None = None
    metrics_port: int | None = None
    check: bool = False


@dataclass(frozen=True)
class Setting:
    """One row of the table: `parse` turns text into the fields of Settings that it sets; None means not built yet, and
    then only the value `today`, which says what happens without it, is accepted."""

    key: str
    values: str
    default: str
    meaning: str
    parse: Callable[[str], Mapping[str, Any]] | None = None
    today: str | None = None


class _Wrong(ValueError):
    """What is wrong with a value; `parse` adds the key and where it was written."""


def _one_of(key: str, built: tuple[str, ...], later: tuple[str, ...]) -> Callable[[str], Mapping[str, Any]]:
    def parse_choice(text: str) -> Mapping[str, Any]:
        if text in later:
            raise _Wrong(f"{text} is not built yet; there is {', '.join(built)}")
        if text not in built:
            raise _Wrong(f"{text!r} is not one of {', '.join(built)}{_did_you_mean(text, built)}")
        return {key: text}

    return parse_choice


def _number(text: str, least: int, most: int = 2**63 - 1) -> int:
    if not re.fullmatch(r"[+-]?[0-9][0-9_]{0,99}", text) or int(text) < least:
        raise _Wrong(f"{text!r} is not a whole number of at least {least}")
    if int(text) > most:
        raise _Wrong(f"{text} is too large; the largest is {most}")
    return int(text)


def _decimal(text: str, what: str, most: float = float_info.max, zero: bool = False) -> float:
    """A number above 0, or from 0 on, as a person or Python writes it."""
    written = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", text, re.IGNORECASE)
    if not written or not (0 < float(text) <= most or (zero and float(text) == 0)):
        raise _Wrong(f"{text!r} is not {what}")
    return float(text)


def _packet(text: str) -> Mapping[str, Any]:
    return {"packet": None if text == "adaptive" else _number(text, 1, 2**31 - 1)}


def _input_batch(text: str) -> Mapping[str, Any]:
    return {"input_batch": None if text == "auto" else _number(text, 1, 2**31 - 1)}


def _explore(text: str) -> Mapping[str, Any]:
    return {"explore": _decimal(text, "a share from 0 to 1", most=1.0, zero=True)}


def _plan(text: str) -> Mapping[str, Any]:
    if text not in ("auto", "mjoin") and not text.startswith("("):
        raise _Wrong(f"{text!r} is not auto, mjoin or a tree of aliases such as ((a b) c)")
    return {"plan": text}


def _cpu(text: str) -> Mapping[str, Any]:
    return {"cpu": None if text == "none" else _decimal(text, "none or a fraction of a core such as 0.5")}


def _batch_rows(text: str) -> Mapping[str, Any]:
    if text == "auto":
        return {"batch_rows": Settings.batch_rows, "batch_rows_auto": True}
    return {"batch_rows": _number(text, 1, 2**31 - 1), "batch_rows_auto": False}


def _seconds(key: str, none: bool = True) -> Callable[[str], Mapping[str, Any]]:
    def parse_seconds(text: str) -> Mapping[str, Any]:
        return {key: None if none and text == "none" else _decimal(text, "a number of seconds above 0")}

    return parse_seconds


def _pause(text: str) -> Mapping[str, Any]:
    return {"pause_ms": None if text == "none" else _decimal(text, "none or a number of milliseconds", zero=True)}


def _at_end(text: str) -> Mapping[str, Any]:
    chosen = _one_of("at_end", ("auto", "flush", "keep"), ())(text)
    return {"at_end": None} if text == "auto" else chosen


def _port(text: str) -> Mapping[str, Any]:
    return {"metrics_port": None if text == "none" else _number(text, 0, 65535)}


def _slots(text: str) -> Mapping[str, Any]:
    return {"slots": None if text == "auto" else _number(text, 1, 4096)}


def _memory(text: str) -> Mapping[str, Any]:
    return {"memory": None if text == "none" else parse_size(text)}


def parse_size(text: str) -> int:
    """Bytes of a size such as 200MB, 1.5 GiB or 4096.

    >>> parse_size("1.5KiB")
    1536
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", text.strip())
    if match is None or match[2].upper() not in _SIZES or float(match[1]) == 0:
        raise _Wrong(f"{text!r} is not a size such as 200MB or 2GiB")
    return int(float(match[1]) * _SIZES[match[2].upper()])


def size_text(size: int) -> str:
    """Bytes as a person would say them.

    >>> size_text(1000), size_text(2_345_678)
    ('1 KB', '2.346 MB')
    """
    unit, of_unit = next(((u, n) for u, n in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)) if size >= n), ("bytes", 1))
    return f"{size / of_unit:.4g} {unit}"


TABLE: tuple[Setting, ...] = (
    Setting("router", "auto, fixed, random, lottery, rank, benefit", "auto", "who chooses a packet's next step",
            _one_of("router", ("auto", "fixed", "random", "lottery", "rank", "benefit"), ())),
    Setting("reroute_every", "a number of tuples", "1000", "tuples between two looks at a routing decision",
            lambda text: {"reroute_every": _number(text, 1)}),
    Setting("packet", "adaptive, a number of tuples", "adaptive", "tuples per packet (1: the per-tuple eddy)", _packet),
    Setting("input_batch", "auto, a number of rows", "auto", "rows of all streams taken in at a time", _input_batch),
    Setting("explore", "a share from 0 to 1", "0.08", "how much of the work may go to trying other routes", _explore),
    Setting("plan", "auto, mjoin, a tree of aliases such as ((a b) c)", "auto",
            "which spans are materialised; selections wait for the operator above one with a ! behind it, "
            "and one with a + groups what it gives (docs/design/plans.md)", _plan),
    Setting("optimizer", "auto, off, mjoin-init, bjtree-init, exhaustive", "auto", "who proposes plans",
            _one_of("optimizer", ("auto", "off", "mjoin-init", "bjtree-init", "exhaustive"), ())),
    Setting("optimize_when", "auto, data, memory, refined", "auto", "what makes the optimiser look for another plan",
            _one_of("optimize_when", ("auto", "data", "memory", "refined"), ())),
    Setting("migration", "auto, moving-state, parallel-track, off", "auto", "how a plan is changed while it runs",
            _one_of("migration", ("auto", "moving-state", "parallel-track", "off"), ())),
    Setting("execution", "unsynchronized, semi, total", "unsynchronized", "how far queues may run apart",
            _one_of("execution", ("unsynchronized", "semi", "total"), ())),
    Setting("memory", "none, a size such as 200MB", "none", "the most that state may take, or the job stops", _memory),
    Setting("cpu", "none, a fraction of a core", "none", "the optimiser's limit for each slot", _cpu),
    Setting("spill", "auto, lazy-disk, active-disk, off", "auto", "where state beyond the memory goes", today="off"),
    Setting("balance", "auto, moving-state, parallel-track, off", "auto", "how load is moved between slots",
            today="off"),
    Setting("slots", "auto, a number", "auto", "how many slots share the work; auto is one in the local engine",
            _slots),
    Setting("groups", "a number", "256", "partition groups in all, each of which is in one slot",
            lambda text: {"groups": _number(text, 1, 65536)}),
    Setting("batch_rows", "auto, a number of rows", "auto", "rows per micro-batch", _batch_rows),
    Setting("batch_seconds", "a number of seconds", "1", "the longest batch batch_rows=auto aims at",
            _seconds("batch_seconds", none=False)),
    Setting("idle_timeout", "none, a number of seconds", "none",
            "how long a silent stream may hold the watermark back", _seconds("idle_timeout")),
    Setting("at_end", "auto, flush, keep", "auto", "whether results that wait for a watermark are given when all "
            "sources are read, or kept for the next run; auto keeps them where there is a checkpoint", _at_end),
    Setting("trigger", "none, a number of seconds", "none", "the time between two micro-batches, on Spark",
            _seconds("trigger")),
    Setting("pause_ms", "a number, none", "50", "the longest a migration may hold output back at a time", _pause),
    Setting("arena_dir", "host memory, a folder", "host memory", "where the state of slots lives, on Spark",
            lambda text: {"arena_dir": None if text == "host memory" else text}),
    Setting("arena_limit", "none, a size", "none", "how large the state of one slot may become, on Spark",
            lambda text: {"arena_limit": None if text == "none" else parse_size(text)}),
    Setting("metrics_port", "none, a port", "none", "where metrics are served, on the loopback address", _port),
    Setting("seed", "a whole number", "0", "the seed of everything random", lambda text: {"seed": _number(text, 0)}),
)  # fmt: skip

_OWN_VARIABLES = ("EDDYLINE_DEBUG", "EDDYLINE_GOLDEN", "EDDYLINE_FULL", "EDDYLINE_FUZZ_SEED")
_BY_KEY = {setting.key: setting for setting in TABLE}


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
        parser, today = _BY_KEY[key].parse, _BY_KEY[key].today
        if parser is None:
            if text.strip() == today:
                continue
            only = f"; the only value is {today}" if today else ""
            raise SettingError(f"setting {key} (from {origin}) is not built yet{only}")
        try:
            settings = replace(settings, **parser(text.strip()))
        except _Wrong as wrong:
            raise SettingError(f"setting {key} (from {origin}): {wrong}") from None
    return settings


def _known(key: str, origin: str) -> str:
    if key not in _BY_KEY:
        raise SettingError(f"there is no setting {key!r} (from {origin}){_did_you_mean(key, _BY_KEY)}")
    return key


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word.lower(), list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""


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
