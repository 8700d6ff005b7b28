"""`eddyline bench`: a benchmark as a table or as JSON; exit status 1 if a bar is missed."""

from __future__ import annotations

import argparse
import json
import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from eddyline import benchmarks
from eddyline.benchmarks import Result
from eddyline.cli.streams import note
from eddyline.cli.tables import table_text


def command(options: argparse.Namespace) -> int:
    """Run a benchmark, or list all benchmarks."""
    if options.name is None:
        print(json.dumps(list(benchmarks.BENCHMARKS)) if options.json else "\n".join(benchmarks.BENCHMARKS))
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ctrl-C raises: benchmarks have temporary files to remove
    keys = ("part", "seed", "seeds", "against", "minutes", "query", "peer", "rows", "rounds", "runs", "quick", "out")
    chosen = {key: value for key in keys if (value := getattr(options, key)) is not None}
    with _progress():
        results = benchmarks.run(options.name, **chosen)
    if options.json:
        print(json.dumps({"name": options.name, "results": [r.as_dict() for r in results]}))
    else:
        print(table(results))
    return 0 if all(r.ok is not False for r in results) else 1


class _Notes(logging.Handler):
    """A log handler that shows the messages of a running benchmark on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def _progress() -> Iterator[None]:
    logger, notes = logging.getLogger(benchmarks.__name__), _Notes()
    logger.addHandler(notes)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(notes)


def table(results: list[Result]) -> str:
    """A row for each result, with its bar."""
    rows = [
        (r.case, r.metric, _number(r.value), r.unit, "" if r.bar is None else _number(r.bar),
         "" if r.ok is None else "yes" if r.ok else "NO")
        for r in results
    ]  # fmt: skip
    return table_text(("case", "metric", "value", "unit", "bar", "ok"), rows, right=(2, 4))


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
