"""Settings: where they come from, and how wrong ones are refused."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eddyline as el
from eddyline.errors import SettingError
from eddyline.settings import AUTO_MEMORY, TABLE, Settings, from_mapping, parse


def test_defaults() -> None:
    assert parse() == Settings()
    assert parse([f"{s.key}={s.default}" for s in TABLE]) == Settings()


def test_precedence(tmp_path: Path) -> None:
    config = tmp_path / "job.toml"
    config.write_text('[eddyline]\nseed = 2\npacket = "2"\n')
    environ = {
        "EDDYLINE_SEED": "1",
        "EDDYLINE_PACKET": "1",
        "EDDYLINE_ROUTER": "random",
        "EDDYLINE_DEBUG": "1",
        "HOME": "x",
    }
    settings = parse(["seed=3"], config, environ)
    assert (settings.seed, settings.packet, settings.router) == (3, 2, "random")


@pytest.mark.parametrize(
    ("text", "size"),
    [("200MB", 200_000_000), ("1 GiB", 2**30), ("4096", 4096), ("1.5kb", 1500), ("none", None), ("auto", AUTO_MEMORY)],
)
def test_memory(text: str, size: int | None) -> None:
    assert parse([f"memory={text}"]).memory == size


def test_the_eddy_adapts_unless_told_otherwise() -> None:
    settings = parse()
    assert (settings.router, settings.packet, settings.input_batch) == ("auto", None, None)
    assert (settings.reroute_every, settings.check) == (1000, False) and 0 < settings.explore < 0.1


@pytest.mark.parametrize("router", ["auto", "fixed", "random", "lottery", "rank", "benefit"])
def test_routers(router: str) -> None:
    assert parse([f"router={router}"]).router == router


def test_numbers() -> None:
    assert parse(["packet=1"]).packet == 1 and parse(["packet=adaptive"]).packet is None
    assert parse(["input_batch=7"]).input_batch == 7 and parse(["input_batch=auto"]).input_batch is None
    assert parse(["reroute_every=5"]).reroute_every == 5
    assert [parse([f"explore={text}"]).explore for text in ("0", "1", "0.5", ".25", "1.0")] == [0, 1, 0.5, 0.25, 1]
    assert [parse([f"trigger={text}"]).trigger for text in ("2", "1e-06", "1E3", "none")] == [2, 1e-6, 1000, None]
    assert [parse([f"pause_ms={text}"]).pause_ms for text in ("0", "2.5", "none")] == [0, 2.5, None]


def test_batch_rows() -> None:
    assert parse(["batch_rows=100"]).batch_rows == 100
    assert parse(["batch_rows=auto"]).batch_rows is None


@pytest.mark.parametrize(
    ("assignment", "answer"),
    [
        ("routr=fixed", "there is no setting 'routr' (from --set); did you mean router?"),
        ("router", "--set router: write KEY=VALUE"),
        (
            "router=fixd",
            "setting router (from --set): 'fixd' is not one of auto, fixed, random, lottery, rank, benefit; "
            "did you mean fixed?",
        ),
        ("packet=auto", "setting packet (from --set): 'auto' is not a whole number of at least 1"),
        ("input_batch=0", "setting input_batch (from --set): '0' is not a whole number of at least 1"),
        ("input_batch=adaptive", "setting input_batch (from --set): 'adaptive' is not a whole number of at least 1"),
        (
            "input_batch=9999999999",
            "setting input_batch (from --set): 9999999999 is too large; the largest is 2147483647",
        ),
        ("reroute_every=0", "setting reroute_every (from --set): '0' is not a whole number of at least 1"),
        ("explore=1.5", "setting explore (from --set): '1.5' is not a share from 0 to 1"),
        ("explore=-0.1", "setting explore (from --set): '-0.1' is not a share from 0 to 1"),
        ("explore=2 %", "setting explore (from --set): '2 %' is not a share from 0 to 1"),
        ("explore=nan", "setting explore (from --set): 'nan' is not a share from 0 to 1"),
        ("packet=0", "setting packet (from --set): '0' is not a whole number of at least 1"),
        ("memory=lots", "setting memory (from --set): 'lots' is not a size such as 200MB or 2GiB"),
        ("batch_rows=-5", "setting batch_rows (from --set): '-5' is not a whole number of at least 1"),
        ("batch_seconds=0", "setting batch_seconds (from --set): '0' is not a number of seconds above 0"),
        ("seed=x", "setting seed (from --set): 'x' is not a whole number of at least 0"),
        ("idle_timeout=5 s", "setting idle_timeout (from --set): '5 s' is not a number of seconds above 0"),
        ("trigger=1e400", "setting trigger (from --set): '1e400' is not a number of seconds above 0"),
        ("groups=0", "setting groups (from --set): '0' is not a whole number of at least 1"),
        ("groups=65537", "setting groups (from --set): 65537 is too large; the largest is 65536"),
        ("slots=0", "setting slots (from --set): '0' is not a whole number of at least 1"),
        ("slots=many", "setting slots (from --set): 'many' is not a whole number of at least 1"),
        ("seed=1" + 30 * "0", f"setting seed (from --set): 1{30 * '0'} is too large; the largest is {2**63 - 1}"),
        ("plan=bushy", "setting plan (from --set): 'bushy' is not auto, mjoin or a tree of aliases such as ((a b) c)"),
        ("plan=", "setting plan (from --set): '' is not auto, mjoin or a tree of aliases such as ((a b) c)"),
        (
            "optimizer=mjoin",
            "setting optimizer (from --set): 'mjoin' is not one of auto, off, mjoin-init, bjtree-init, exhaustive; "
            "did you mean mjoin-init?",
        ),
        ("cpu=0", "setting cpu (from --set): '0' is not none or a fraction of a core such as 0.5"),
        ("cpu=-1", "setting cpu (from --set): '-1' is not none or a fraction of a core such as 0.5"),
        ("cpu=half", "setting cpu (from --set): 'half' is not none or a fraction of a core such as 0.5"),
        ("cpu=inf", "setting cpu (from --set): 'inf' is not none or a fraction of a core such as 0.5"),
        ("packet=2147483648", "setting packet (from --set): 2147483648 is too large; the largest is 2147483647"),
    ],
)
def test_refused(assignment: str, answer: str) -> None:
    with pytest.raises(SettingError) as refused:
        parse([assignment])
    assert str(refused.value) == answer


def test_values_that_are_the_defaults() -> None:
    true = "idle_timeout=none metrics_port=none trigger=none cpu=none at_end=auto spill=auto balance=off"
    assert parse(true.split()) == Settings()
    assert from_mapping({"seed": 0, "cpu": None}) == Settings()


def test_plans_and_who_proposes_them() -> None:
    assert (parse().plan, parse().optimizer, parse().cpu) == ("auto", "auto", None)
    assert [parse([f"plan={text}"]).plan for text in ("auto", "mjoin", " ((a b) c) ")] == ["auto", "mjoin", "((a b) c)"]
    for name in ("auto", "off", "mjoin-init", "bjtree-init", "exhaustive"):
        assert parse([f"optimizer={name}"]).optimizer == name
    assert [parse([f"cpu={text}"]).cpu for text in ("none", "0.5", ".25", "2")] == [None, 0.5, 0.25, 2.0]
    assert from_mapping({"cpu": 0.5}).cpu == 0.5


def test_slots_and_groups() -> None:
    assert parse(["slots=3", "groups=7"]) == Settings(slots=3, groups=7)
    assert parse(["slots=auto"]).slots is None and parse().groups == 256


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("x = ", "cannot read the settings in"),
        ("[other]\n", "has no [eddyline] table"),
        ("[eddyline]\nsead = 1", "did you mean"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, answer: str) -> None:
    config = tmp_path / "job.toml"
    config.write_text(text)
    with pytest.raises(SettingError) as refused:
        parse(config=config)
    assert answer in str(refused.value)
    assert "\n" not in str(refused.value)


def test_missing_file_and_environment() -> None:
    with pytest.raises(SettingError, match="No such file"):
        parse(config="nowhere.toml")
    assert parse(environ={"EDDYLINE_ROUTR": "fixed"}) == parse()  # the command line warns of it


def test_from_python() -> None:
    assert from_mapping({"seed": 5, "memory": None}).seed == 5


def test_slots_and_groups_show_in_the_plan() -> None:
    batch = pa.record_batch({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    streams = {name: el.stream([batch], time="ts") for name in "ab"}
    query = el.query("SELECT a.k FROM a [RANGE 1 SECOND], b [RANGE 1 SECOND] WHERE a.k = b.k", streams=streams)
    assert "slots" not in query.explain()
    assert "3 slots, 64 groups: a, b by k" in query.explain({"slots": 3, "groups": 64})


def test_a_plan_shows_and_a_wrong_one_is_refused_before_any_row() -> None:
    batch = pa.record_batch({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})
    streams = {name: el.stream([batch], time="ts") for name in "abc"}
    window = "[RANGE 1 SECOND]"
    select = f"SELECT a.k FROM a {window}, b {window}, c {window} WHERE a.k = b.k AND b.k = c.k"
    query = el.query(select, streams=streams)
    assert query.explain({"plan": "((A b) c)"}).startswith("binary tree ((a b) c) of 3 sources\n")
    with pytest.raises(SettingError) as refused:
        query.explain({"plan": "((a b) d)"})
    assert str(refused.value) == "plan=((a b) d): there is no alias d; the query has a, b, c"
    with pytest.raises(SettingError, match="c is missing"):
        query.start([].append, settings={"plan": "(a b)"}).wait()


def test_active_disk_needs_groups_that_move() -> None:
    for values in ({"spill": "active-disk"}, {"spill": "active-disk", "balance": "off"}):
        with pytest.raises(SettingError, match="set balance=auto too"):
            from_mapping(values)
    assert from_mapping({"balance": "auto", "spill": "active-disk"}).spill == "active-disk"
    assert from_mapping({"spill": "lazy-disk"}).spill == "lazy-disk"
