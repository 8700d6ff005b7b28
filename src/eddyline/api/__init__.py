"""Queries from Python, on either engine: streams, queries, and the runs that they start."""

from eddyline.api.query import Query as Query
from eddyline.api.run import Run as Run
from eddyline.api.streams import Stream as Stream
from eddyline.api.streams import stream as stream
