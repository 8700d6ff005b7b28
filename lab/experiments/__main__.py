"""`./run experiment`: a figure of a paper, measured here, as a table, a PNG, and CSV files of the measurements and
of the table.

A test file is written to the folder before the measurement, which takes minutes. Without matplotlib no PNG is drawn,
and a line says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile

from eddyline.cli.main import guarded
from eddyline.cli.streams import note
from eddyline.errors import JobError
from lab.experiments import EXPERIMENTS, Experiment, chosen
from lab.experiments.chart import draw


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the figure that the arguments name, or list all; without arguments those of the process."""
    options = argparse.ArgumentParser(
        prog="./run experiment", description="Measure a figure of a paper again; without a name: list them."
    )
    options.add_argument("name", nargs="?", metavar="NAME", help="one of the list, or all")
    options.add_argument("--out", default="experiments-out", metavar="DIR", help="for CSV and PNG (%(default)s)")
    options.add_argument("--quick", action="store_true", help="a small version: shorter runs, fewer points")
    return guarded(lambda: command(options.parse_args(arguments)), of_process=arguments is None)


def command(options: argparse.Namespace) -> int:
    """Run one experiment or all of them, or list them."""
    if options.name is None:
        width = max(map(len, EXPERIMENTS))
        print("\n".join(f"{e.name.ljust(width)}  {e.about}" for e in EXPERIMENTS.values()))
        return 0
    experiments, out = chosen(options.name), Path(options.out)
    _try(out)
    for experiment in experiments:
        _measure(experiment, options.quick, out)
    return 0


def _try(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise JobError(f"cannot write to the folder {out}: {error.strerror}") from error


def _measure(experiment: Experiment, quick: bool, out: Path) -> None:
    figure = experiment.run(quick, lambda line: note(f"{experiment.name}: {line}"))
    small = " (--quick: too short to mean much)" if quick else ""
    summary = figure.summary()
    print(f"{experiment.name}: {experiment.about}{small}\n\n{summary.markdown()}\n", flush=True)
    file = out / f"{experiment.name}.csv"
    figure.table.write(file)
    summary.write(file.with_suffix(".summary.csv"))
    note(f"{experiment.name}: wrote {file} and {file.with_suffix('.summary.csv')}")
    try:
        draw(figure.chart, file.with_suffix(".png"))
    except JobError as missing:
        note(f"eddyline: {missing}")
    else:
        note(f"{experiment.name}: wrote {file.with_suffix('.png')}")


if __name__ == "__main__":
    sys.exit(main())
