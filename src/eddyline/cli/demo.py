"""`eddyline demo`: four generated streams whose data drifts, joined and counted, with a view of what happens."""

from __future__ import annotations

import argparse
import json
import sys

from eddyline.cli.main import BEGAN
from eddyline.settings import Settings

_SCRIPT = """\
CREATE STREAM orders (ts TIMESTAMP, id BIGINT, customer BIGINT, amount DOUBLE) USING generate OPTIONS (
    duration '{seconds} s', rate 4000, disorder '1 s', id.distribution 'sequence', id.domain '0..999999999',
    customer.domain '0..9999', amount.domain '1..500',
    drift '{third} s: customer.distribution = zipf(1.1); {two_thirds} s: customer.distribution = uniform, rate = 8000'
) TIMESTAMP BY ts LATENESS 1 SECOND;
CREATE STREAM payments (ts TIMESTAMP, order_id BIGINT, method VARCHAR) USING generate OPTIONS (
    duration '{seconds} s', rate 4000, order_id.distribution 'sequence', order_id.domain '0..999999999',
    method.domain 'card|cash|transfer', drift '{two_thirds} s: rate = 8000'
) TIMESTAMP BY ts;
CREATE STREAM shipments (ts TIMESTAMP, order_id BIGINT, depot BIGINT) USING generate OPTIONS (
    duration '{seconds} s', rate 4000, order_id.distribution 'sequence', order_id.domain '0..999999999',
    order_id.selectivity 0.9, depot.domain '0..99',
    drift '{third} s: order_id.selectivity = 0.1; {two_thirds} s: order_id.selectivity = 0.5, rate = 8000'
) TIMESTAMP BY ts;
CREATE STREAM visits (ts TIMESTAMP, customer BIGINT, page VARCHAR) USING generate OPTIONS (
    duration '{seconds} s', rate 2000, customer.domain '0..9999', page.domain 'home|search|item|basket',
    drift '{third} s: customer.domain ~ 0..999'
) TIMESTAMP BY ts;

SELECT window_end() AS at, v.page, COUNT(*) AS orders, round(AVG(o.amount), 2) AS mean_amount
FROM orders [RANGE 10 SECONDS SLIDE 10 SECONDS] AS o, payments [RANGE 10 SECONDS SLIDE 10 SECONDS] AS p,
     shipments [RANGE 10 SECONDS SLIDE 10 SECONDS] AS s, visits [RANGE 10 SECONDS SLIDE 10 SECONDS] AS v
WHERE o.id = p.order_id AND o.id = s.order_id AND o.customer = v.customer AND p.method <> 'cash'
GROUP BY v.page
"""


def command(options: argparse.Namespace) -> int:
    """Runs the generated job and tells what it did."""
    from eddyline.cli.progress import ProgressLine
    from eddyline.cli.stopping import interrupts
    from eddyline.runtime.job import prepare
    from eddyline.runtime.runner import LocalRunner

    seconds = options.seconds
    text = _SCRIPT.format(seconds=seconds, third=seconds // 3, two_thirds=2 * seconds // 3)
    print(f"Four streams, {seconds} s of event time, joined within 10 s and counted every 10 s. The script:\n\n{text}")
    settings = Settings()
    runner = LocalRunner(prepare(text, seed=settings.seed, out=sys.stdout), settings, began=BEGAN)
    progress = ProgressLine(always=False)
    with interrupts() as stop:
        try:
            summary = runner.run(stop.is_set, progress)
        finally:
            progress.clear()
    rate = summary.rows_in / summary.seconds if summary.seconds else 0
    print(
        f"""
The data drifted twice: after {seconds // 3} s few customers made most orders and few orders were shipped;
after {2 * seconds // 3} s orders came twice as fast.

rows read              {summary.rows_in:>12,}   in {summary.seconds:.1f} s, {rate:,.0f} a second
rows written           {summary.rows_out:>12,}
late rows              {summary.rows_late:>12,}
most rows in state     {summary.peak_state_rows:>12,}   (expired ones are dropped)
most memory for state  {summary.peak_memory_bytes / 1e6:>12,.1f}   MB

The plan:
{summary.plan}

Next: put the script above in a file, change it, run it with `./run eddyline run FILE.sql`; docs/guide.md goes on."""
    )
    if options.json:
        print(json.dumps(summary.as_dict()))
    return 0
