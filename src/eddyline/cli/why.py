"""`eddyline why`: a recorded run in sentences, or one moment of it."""

from __future__ import annotations

import argparse

from eddyline.runtime.recording.files import read
from eddyline.runtime.recording.moment import moment, time_of
from eddyline.runtime.recording.story import story, told


def command(options: argparse.Namespace) -> int:
    """Print the sentences."""
    record = told(read(options.file))
    lines = story(record) if options.at is None else moment(record, time_of(options.at, record))
    for line in lines:
        print(line)
    return 0
