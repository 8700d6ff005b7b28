"""The generator: rates, domains, distributions, disorder, drift; the same rows however they are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.cql.script import parse
from eddyline.errors import SettingError
from eddyline.runtime.formats import open_source
from eddyline.runtime.sources.generate.drift import segments
from eddyline.runtime.sources.generate.pace import Pace
from eddyline.runtime.sources.source import Wanted

_SECOND = 1_000_000


def _table(options: str, columns: str = "k BIGINT", seed: int = 0, lateness: str = "") -> pa.Table:
    source = _source(options, columns, seed, lateness)
    wanted = Wanted.of(source.schema, source.schema.names, True)
    return pa.Table.from_batches([chunk.rows for chunk in source.read(wanted)], source.schema)


def _source(options: str, columns: str = "k BIGINT", seed: int = 0, lateness: str = ""):  # type: ignore[no-untyped-def]
    text = f"CREATE STREAM s (ts TIMESTAMP, {columns}) USING generate OPTIONS ({options}) TIMESTAMP BY ts {lateness};"
    return open_source(parse(text + "SELECT 1 AS x FROM s").declarations[0], seed)


def _seconds(table: pa.Table) -> np.ndarray:
    start = np.datetime64("2026-01-01", "us")
    return (table["ts"].to_numpy() - start).astype(np.int64) / _SECOND


def test_rate_rows_and_duration() -> None:
    times = _seconds(_table("rows 5000, rate 1000"))
    assert len(times) == 5000
    assert np.allclose(times, np.arange(5000) / 1000)
    assert _table("duration '3 s', rate 50").num_rows == 150
    assert _table("duration '3 s', rate 50, rows 20").num_rows == 20


def test_start_and_endless() -> None:
    assert _table("rows 1, start '2024-05-06 07:08:09'")["ts"][0].as_py().isoformat() == "2024-05-06T07:08:09"
    assert _source("rate 5").endless
    assert not _source("rows 5").endless
    assert not _source("drift '5 s: rate = 0'").endless


def test_seeds_and_names() -> None:
    one, again, other = (_table("rows 1000", seed=s) for s in (1, 1, 2))
    assert one.equals(again)
    assert not one.equals(other)
    assert _table("rows 9, seed 5", seed=1).equals(_table("rows 9, seed 5", seed=2))


def test_a_columns_values_do_not_depend_on_the_columns_read() -> None:
    source = _source("rows 1000", "a BIGINT, b BIGINT")
    alone = pa.Table.from_batches([c.rows for c in source.read(Wanted.of(source.schema, ["b"], False))])
    assert alone["b"].equals(_table("rows 1000", "a BIGINT, b BIGINT")["b"])


def test_domains_and_distributions() -> None:
    made = _table(
        "rows 40000, a.domain '10..19', b.distribution 'sequence', b.domain '0..6', c.distribution 'constant',"
        "c.domain '5..9', d.distribution 'zipf(1.0)', d.domain '0..99', e.domain 'x|y|z', f.domain '-1..1',"
        "h.domain '0.5..1.5'",
        "a BIGINT, b INTEGER, c SMALLINT, d BIGINT, e VARCHAR, f DOUBLE, g BOOLEAN, h DECIMAL(6, 3), i DATE, j VARCHAR",
    )
    assert set(made["a"].unique().to_pylist()) == set(range(10, 20))
    assert made["b"].to_pylist()[:9] == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert made["c"].unique().to_pylist() == [5]
    shares = np.bincount(made["d"].to_numpy(), minlength=100) / 40000
    harmonic = (1 / np.arange(1, 101)).sum()
    assert np.allclose(shares[:3], np.array([1, 1 / 2, 1 / 3]) / harmonic, rtol=0.1)
    assert set(made["e"].unique().to_pylist()) == {"x", "y", "z"}
    assert abs(pc.mean(made["f"]).as_py()) < 0.02
    assert abs(pc.mean(made["g"].cast(pa.int8())).as_py() - 0.5) < 0.02
    assert 0.5 <= float(pc.min(made["h"]).as_py()) < float(pc.max(made["h"]).as_py()) <= 1.5
    assert made["i"][0].as_py().isoformat() == "2026-01-01"
    assert len(made["j"].unique()) == 100


def test_nulls_and_selectivity() -> None:
    options = "rows 40000, a.nulls 0.2, k.selectivity 0.25, k.domain '0..9', w.selectivity 0.5, w.domain 'p|q'"
    made = _table(options + ", b.selectivity 0.1", "a BIGINT, k BIGINT, w VARCHAR, b BOOLEAN")
    assert abs(made["a"].null_count / 40000 - 0.2) < 0.01
    keys = made["k"].to_numpy()
    assert abs((keys >= 0).mean() - 0.25) < 0.01
    misses = keys[keys < 0]
    assert len(np.unique(misses)) == len(misses)
    assert abs(pc.mean(pc.is_in(made["w"], pa.array(["p", "q"])).cast(pa.int8())).as_py() - 0.5) < 0.02
    assert abs(pc.mean(made["b"].cast(pa.int8())).as_py() - 0.1) < 0.02


def test_disorder_and_late_rows() -> None:
    times = _seconds(_table("rows 20000, rate 1000, disorder '2 s'"))
    behind = np.maximum.accumulate(times) - times
    assert 1.8 < behind.max() <= 2.0
    late = _seconds(_table("rows 20000, rate 1000, disorder '2 s', late 0.01", lateness="LATENESS 3 SECONDS"))
    behind = np.maximum.accumulate(late) - late
    assert 100 < (behind > 2.5).sum() < 300


def test_drift_of_rate_and_domain() -> None:
    made = _table(
        "duration '40 s', rate 100, k.domain '0..9', drift '10 s: rate = 200, k.domain = 50..59; 30 s: rate ~ 400'"
    )
    times, keys = _seconds(made), made["k"].to_numpy()
    counts = np.histogram(times, bins=[0, 10, 20, 30, 40])[0]
    assert counts.tolist() == [1000, 2500, 3500, 4000]
    assert np.all(np.diff(times) >= 0)
    assert keys[times < 10].max() == 9
    assert keys[times >= 10].min() >= 50
    ramp = _table(
        "duration '10 s', rate 1000, k.domain '0..0', k.distribution 'uniform', drift '10 s: k.domain ~ 0..100'"
    )
    halves = ramp["k"].to_numpy()[:5000], ramp["k"].to_numpy()[5000:]
    assert halves[0].max() <= 50 < halves[1].max()


def test_a_pause_in_the_middle() -> None:
    times = _seconds(_table("duration '30 s', rate 10, drift '10 s: rate = 0; 20 s: rate = 10'"))
    assert len(times) == 200
    assert not ((times >= 10) & (times < 20)).any()


def test_pace_is_the_inverse_of_the_rows() -> None:
    pace = Pace(segments({"rate": 0.0}, "10 s: rate ~ 100; 20 s: rate ~ 0; 30 s: rate = 0"))
    assert pace.rows_until(10 * _SECOND) == 500
    assert pace.rows_until(float("inf")) == 1000
    times, _ = pace.times(0, 1000)
    assert [pace.rows_until(float(t)) for t in times[1::100]] == pytest.approx(list(range(1, 1000, 100)), abs=1)


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        ("row 5", "generate has no option 'row'; did you mean 'rows'?"),
        ("rows many", "option rows is a whole number of at least 0, not 'many'"),
        ("k.domian '0..5'", "generate has no option 'k.domian': column k has no domian"),
        ("z.domain '0..5'", "generate has no option 'z.domain'"),
        ("k.domain '5..0'", "k.domain: 5..0 is empty, the larger number comes last"),
        ("k.domain '5'", "k.domain is a range such as '0..99' or words such as 'red|green|blue', not '5'"),
        ("k.domain 'a|b'", "k.domain: only a text column has words"),
        ("k.distribution 'normal'", "k.distribution is uniform, zipf(1.2), sequence or constant, not 'normal'"),
        ("k.nulls 2", "k.nulls is a share between 0 and 1, not '2'"),
        ("rate '-5'", "rate is a number of at least 0, not '-5'"),
        ("disorder 'long'", "disorder is a length of time such as '2 s' or '1 minute 30 s', not 'long'"),
        ("start 'today'", "start is a time such as '2026-01-01 12:00:00', not 'today'"),
        ("drift 'rate = 5'", "drift: 'rate = 5' is not a step such as '30 s: rate = 50000, a.domain ~ 0..9'"),
        ("drift '5 s: rate 5'", "drift: 'rate 5' is not a change such as 'rate = 50000' or 'rate ~ 50000'"),
        ("drift '5 s: rat = 5'", "drift: nothing is called 'rat'; did you mean 'rate'?"),
        ("drift '5 s: rate = 5; 5 s: rate = 6'", "drift: its times must be above 0 and grow"),
        (
            "drift '5 s: k.distribution ~ constant'",
            "drift: k.distribution cannot move gradually; write = in place of ~",
        ),
    ],
)
def test_wrong_options(options: str, answer: str) -> None:
    with pytest.raises(SettingError) as refused:
        _source(options)
    assert str(refused.value).startswith(answer)


@pytest.mark.parametrize(
    ("columns", "options", "answer"),
    [
        ("k INT", "k.domain '0..99999999999999'", r"k.domain: 0..99999999999999 must lie within .* range of INTEGER"),
        ("k UTINYINT", "k.domain '-1..5'", r"k.domain: -1..5 must lie within 0..255, the range of UTINYINT"),
        ("k TINYINT", "k.domain '-100..5', k.selectivity 0.5", "the values outside of it that selectivity asks for"),
        ("k TINYINT", "drift '5 s: k.domain = 0..200'", "k.domain: 0..200 must lie within -128..127"),
        ("d DECIMAL(4, 2)", "d.domain '0..100'", "d.domain: 0..100 must lie within -99.99..99.99"),
        ("d DECIMAL(38, 18)", "d.domain '0..100'", "d.domain: 0..100 must lie within"),
        ("x DOUBLE", "x.distribution 'zipf(1.1)'", "x.distribution: zipf draws whole numbers or words"),
    ],
)
def test_domains_that_do_not_fit_the_type(columns: str, options: str, answer: str) -> None:
    with pytest.raises(SettingError, match=answer):
        _source(f"rows 5, {options}", columns)


def test_domains_at_the_bounds_of_types() -> None:
    table = _table(
        "rows 5000, a.domain '-128..127', d.domain '-9.99..9.99'", "a TINYINT, d DECIMAL(3, 2), e DECIMAL(3,2)"
    )
    assert pc.min_max(table["a"]).as_py() == {"min": -128, "max": 127}
