"""The dashboard of a command: `--dashboard [[ADDRESS:]PORT]` and `--dashboard-token-env NAME`."""

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
        "--dashboard-token-env",
        metavar="NAME",
        help="environment variable with the secret that opens the dashboard (default: a random secret); needed for an"
        " ADDRESS of the network",
    )
    parser.add_argument("--dashboard-token", action=_Refused, help=argparse.SUPPRESS)


class _Refused(argparse.Action):
    """An option that would show a secret to everybody who lists the processes of this machine."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        parser.error(
            "--dashboard-token shows the token to everybody on this machine; put it in an environment variable, as in"
            " --dashboard-token-env DASHBOARD_TOKEN, and choose another token"
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
    from eddyline.runtime.secrets import secret

    feed, name = EventFeed(), options.dashboard_token_env
    token = None if name is None else secret("--dashboard-token-env", name)
    with serve(feed, place_of(options.dashboard, token)) as served:
        note(f"dashboard: {served.address}")
        yield feed
