"""The job of `eddyline demo`: four streams joined by one key, whose rates and selectivities drift.

In each third of the time another stream is rare: hardly any row finds a partner in it. The rare stream should be asked
first: the others have about `PARTNERS` partners for every row, so asking them first multiplies rows for nothing. The
order of the script is right in the first third and wrong afterwards. Before a stream becomes plentiful, the next one
has been rare for the length of a window; otherwise rows of both phases would join and give millions of results.
"""

from __future__ import annotations

from dataclasses import dataclass

START = 1_767_225_600_000_000
"""The first generated event time: 2026-01-01, in microseconds since 1970."""
WINDOW = 0.5
"""Seconds."""
RATE, KEYS, PARTNERS = 80_000, 4_000, 10
"""Rows a second of each stream, the number of keys, and the resulting rows with one key in a window: RATE * WINDOW /
KEYS."""
RARE = 0.0001
STREAMS = ("orders", "payments", "parcels", "alarms")
ALIASES = dict(zip("opsa", STREAMS, strict=True))
WATCHED = 1
"""The source whose route is described: payments, which always find partners."""
BATCHES, LEAST_ROWS = 36, 131_072
"""About how many batches a run has, but for short ones: on Spark a batch of fewer rows has no rows of some streams."""
_STREAM = """\
CREATE STREAM {name} (ts TIMESTAMP, k BIGINT, v BIGINT) USING generate OPTIONS (
    duration '{seconds} s', rate {rate}, k.domain '0..{last}'{more}
) TIMESTAMP BY ts;
"""
_QUERY = """\
CREATE SINK out USING parquet OPTIONS (path '{out}', mode 'overwrite');

INSERT INTO out
SELECT greatest(o.ts, p.ts, s.ts, a.ts) AS ts, o.v AS orders_v, p.v AS payments_v, s.v AS parcels_v, a.v AS alarms_v
FROM orders [RANGE {window:.0f} MILLISECONDS] AS o, payments [RANGE {window:.0f} MILLISECONDS] AS p,
     parcels [RANGE {window:.0f} MILLISECONDS] AS s, alarms [RANGE {window:.0f} MILLISECONDS] AS a
WHERE o.k = p.k AND p.k = s.k AND s.k = a.k;
"""


@dataclass(frozen=True)
class DemoPhase:
    """A stretch of event time, in seconds, in which the data does not change."""

    begin: int
    end: int
    rare: str
    """The stream in which hardly any row finds a partner."""
    what: str


def phases(seconds: int) -> list[DemoPhase]:
    """The phases of the data."""
    a, b = seconds // 3, 2 * seconds // 3
    return [
        DemoPhase(0, a, "orders", "hardly any order has a partner"),
        DemoPhase(a, b, "alarms", "now hardly any alarm has one"),
        DemoPhase(b, seconds, "parcels", "now hardly any parcel has one, and payments come twice as often"),
    ]


def batch_rows(seconds: int) -> int:
    """The rows of a batch, the same for both sides."""
    return max(LEAST_ROWS, RATE * (5 * seconds - 2 * seconds // 3) // BATCHES)


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
    return streams(seconds) + _QUERY.format(out=out, window=1000 * WINDOW)
