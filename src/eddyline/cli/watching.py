"""The dashboard of a command: `--dashboard [[ADDRESS:]PORT]` and `--dashboard-token`."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eddyline.cli.streams import note

if TYPE_CHECKING:
    from eddyline.runtime.recording.feed import EventFeed


_PLACE = re.compile(r"(\S*:)?\d+")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--dashboard",
        nargs="?",
        const="",
        metavar="[ADDRESS:]PORT",
        help="show the run in the browser, and print the address (default: a free port of this machine)",
    )
    parser.add_argument(
        "--dashboard-token",
        metavar="TOKEN",
        help="secret that opens the dashboard (default: a random one); needed for an ADDRESS of the network",
    )


def spelt_out(arguments: Sequence[str]) -> list[str]:
    """The arguments, where `--dashboard` takes the next one only if that is a place.

    >>> spelt_out(["run", "--dashboard", "job.sql"])
    ['run', '--dashboard=', 'job.sql']
    >>> spelt_out(["run", "--dashboard", "0.0.0.0:8080", "job.sql"])
    ['run', '--dashboard=0.0.0.0:8080', 'job.sql']
    """
    found: list[str] = []
    for argument in arguments:
        if found[-1:] == ["--dashboard="] and _PLACE.fullmatch(argument):
            found[-1] += argument
        else:
            found.append("--dashboard=" if argument == "--dashboard" else argument)
    return found


@contextlib.contextmanager
def dashboard(options: argparse.Namespace) -> Iterator[EventFeed | None]:
    """Serves a dashboard if the options ask for one, and says where; gives the feed that it shows."""
    if options.dashboard is None:
        yield None
        return
    from eddyline.dashboard.place import place_of
    from eddyline.dashboard.server import serve
    from eddyline.runtime.recording.feed import EventFeed

    feed = EventFeed()
    with serve(feed, place_of(options.dashboard, options.dashboard_token)) as served:
        note(f"dashboard: {served.address}")
        yield feed
