"""`./run bench`: a benchmark as a table or as JSON; exit status 1 if a bar is missed."""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from eddyline.cli.main import guarded
from eddyline.cli.streams import note
from eddyline.cli.tables import table_text
from lab import bench
from lab.bench import Result


def parser() -> argparse.ArgumentParser:
    """The options of all benchmarks; each says what it has no use for."""
    options = argparse.ArgumentParser(prog="./run bench", description="Run a benchmark; without a name: list them.")
    options.add_argument("name", nargs="?", metavar="NAME")
    options.add_argument("--json", action="store_true", help="print {name, results} as JSON")
    options.add_argument("--part", metavar="PART", help="only this part of the benchmark, if it has parts")
    options.add_argument("--seed", type=int, metavar="N", help="seed of what is drawn at random (default: a fresh one)")
    options.add_argument("--seeds", type=int, metavar="N", help="how many seeds, from --seed on")
    options.add_argument("--against", metavar="CHECKOUT", help="another checkout to compare with (core, batches)")
    options.add_argument("--minutes", type=float, metavar="N", help="how long it runs (kafka-lag; default 20)")
    options.add_argument("--query", metavar="NAME,...", help="only these queries (peers)")
    options.add_argument("--peer", metavar="NAME,...", help="only these peers (peers)")
    options.add_argument("--rows", type=int, metavar="N", help="rows of all streams of a query (peers)")
    options.add_argument("--rounds", type=int, metavar="N", help="how often each side runs (peers, batches)")
    options.add_argument("--runs", type=int, metavar="N", help="how often the demo runs (demo; default 20)")
    options.add_argument("--quick", action="store_true", default=None, help="fewer rows, one round (peers)")
    options.add_argument("--out", metavar="DIR", help="where CSV and PNG go (kafka-lag: here, peers: peers-out)")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark that the arguments name, or list all; without arguments those of the process."""
    return guarded(lambda: command(parser().parse_args(arguments)), of_process=arguments is None)


def command(options: argparse.Namespace) -> int:
    """Run a benchmark, or list all bench."""
    if options.name is None:
        print(json.dumps(list(bench.BENCHMARKS)) if options.json else "\n".join(bench.BENCHMARKS))
        return 0
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Ctrl-C raises: benchmarks have temporary files to remove
    keys = ("part", "seed", "seeds", "against", "minutes", "query", "peer", "rows", "rounds", "runs", "quick", "out")
    chosen = {key: value for key in keys if (value := getattr(options, key)) is not None}
    with _progress():
        results = bench.run(options.name, **chosen)
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
    logger, notes = logging.getLogger("lab"), _Notes()
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


if __name__ == "__main__":
    sys.exit(main())
