"""The job of `eddyline demo`: four streams joined by one key, whose rates and selectivities drift.

In each third of the time another stream is rare: hardly any row finds a partner in it. The rare stream should be probed
first: the others have about `PARTNERS` partners for every row, so probing them first multiplies rows for nothing. The
order of the script is right in the first third and wrong afterwards. Before a stream becomes plentiful, the next one
has been rare for the length of a window; otherwise rows of both phases would join and give millions of results.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

START = 1_767_225_600_000_000
"""The first generated event time: 2026-01-01, in microseconds since 1970."""
WINDOW = 2
RATE, KEYS, PARTNERS = 40_000, 8_000, 10
"""Rows a second of each stream, the number of keys, and the resulting rows with one key in a window: RATE * WINDOW /
KEYS."""
RARE = 0.0005
STREAMS = ("orders", "payments", "parcels", "alarms")
WATCHED = 1
"""The source whose route is shown: payments, which always find partners."""
_STREAM = """\
CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT) USING generate OPTIONS (
    duration '{seconds} s', rate {rate}, k.domain '0..{last}'{more}
) TIMESTAMP BY ts;
"""
_QUERY = """\
CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');

INSERT INTO out
SELECT greatest(o.ts, p.ts, s.ts, a.ts) AS ts, o.v AS orders_v, p.v AS payments_v, s.v AS parcels_v, a.v AS alarms_v
FROM orders [RANGE {window} SECONDS] AS o, payments [RANGE {window} SECONDS] AS p,
     parcels [RANGE {window} SECONDS] AS s, alarms [RANGE {window} SECONDS] AS a
WHERE o.k = p.k AND p.k = s.k AND s.k = a.k;
"""


@dataclass(frozen=True)
class DemoPhase:
    """A stretch of event time, in seconds, in which the data does not change."""

    begin: int
    end: int
    what: str


def phases(seconds: int) -> list[DemoPhase]:
    """The phases of the data."""
    a, b = seconds // 3, 2 * seconds // 3
    return [
        DemoPhase(0, a, "hardly any order has a partner: ask orders first"),
        DemoPhase(a, b, "now it is alarms that hardly match: ask alarms first"),
        DemoPhase(b, seconds, "now it is parcels, and payments come twice as often: ask parcels first"),
    ]


def streams(seconds: int) -> str:
    """The CREATE STREAM statements."""
    a, b = seconds // 3, 2 * seconds // 3
    more = {
        "orders": f", k.selectivity {RARE},\n    drift '{a + WINDOW} s: k.selectivity = 1'",
        "payments": f",\n    drift '{b} s: rate = {2 * RATE}'",
        "parcels": f",\n    drift '{b} s: k.selectivity = {RARE / 2}'",
        "alarms": f",\n    drift '{a} s: k.selectivity = {RARE}; {b + WINDOW} s: k.selectivity = 1'",
    }
    return "".join(
        _STREAM.format(name=name, seconds=seconds, rate=RATE, last=KEYS - 1, more=more[name]) for name in STREAMS
    )


def script(seconds: int, out: str) -> str:
    """The whole script."""
    return streams(seconds) + _QUERY.format(out=out, window=WINDOW)


def files_script(seconds: int, until: int, name: str, folder: str) -> str:
    """A script that writes the rows of one stream before a time to parquet files of half a second each."""
    sink = f"CREATE SINK files USING parquet OPTIONS (path '{folder}/{name}', rows_per_file {RATE // 2});\n"
    when = datetime.fromtimestamp(START / 1e6 + until, UTC)
    rows = f"INSERT INTO files SELECT ts, k, v FROM {name} WHERE ts < TIMESTAMP '{when:%Y-%m-%d %H:%M:%S}';"
    return streams(seconds) + sink + rows
