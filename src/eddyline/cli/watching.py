"""The dashboard of a command: `--dashboard[=[ADDRESS:]PORT]` and `--dashboard-token`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from eddyline.cli.streams import note

if TYPE_CHECKING:
    from eddyline.runtime.recording.feed import EventFeed


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    parser.add_argument(
        "--dashboard",
        nargs="?",
        const="",
        metavar="[ADDRESS:]PORT",
        help="show the run in the browser; prints where (default: a free port of this machine)",
    )
    parser.add_argument(
        "--dashboard-token",
        metavar="TOKEN",
        help="what a browser must know to see it (default: a random one); needed for an ADDRESS of the network",
    )


def spelt_out(arguments: Sequence[str]) -> list[str]:
    """The arguments, where an option without its value does not take the next argument for it.

    >>> spelt_out(["run", "--dashboard", "job.sql"])
    ['run', '--dashboard=', 'job.sql']
    """
    return ["--dashboard=" if argument == "--dashboard" else argument for argument in arguments]


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
