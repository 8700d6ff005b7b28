"""`eddyline why`: a recorded run in sentences, or one moment of it."""

from __future__ import annotations

import argparse

from eddyline.cli.streams import say
from eddyline.runtime.recording.files import read, understood
from eddyline.runtime.recording.moment import moment, time_of
from eddyline.runtime.recording.story import story, told


def command(options: argparse.Namespace) -> int:
    """Print the sentences."""
    with understood(options.file):
        record = told(read(options.file))
        lines = list(story(record) if options.at is None else moment(record, time_of(options.at, record)))
    for line in lines:
        say(line)
    return 0
