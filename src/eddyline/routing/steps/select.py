"""The selection step: tuples pass if a user function returns true."""

from __future__ import annotations

from collections.abc import Iterator

from eddyline.bound.evaluate import ErrorCount
from eddyline.plan.steps import Select
from eddyline.routing.packet import Packet
from eddyline.routing.payload import Payload


def select(step: Select, packet: Packet, payload: Payload, errors: ErrorCount) -> Iterator[Packet]:
    """The tuples that pass, if there are any."""
    keep = payload.mask(step.predicate, packet, errors)
    if keep.any():
        yield packet.kept(keep).passed(step.selection)
