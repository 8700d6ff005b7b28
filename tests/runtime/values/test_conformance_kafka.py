"""The conformance table of values through the messages of a Kafka broker."""

from __future__ import annotations

import pytest

from tests.runtime.values.test_conformance import CASES, compare
from tests.support import ways

pytest.importorskip("confluent_kafka")


@pytest.mark.parametrize("every", [pytest.param(12, id="short"), pytest.param(1, id="all", marks=pytest.mark.long)])
def test_messages_give_what_the_law_says(every: int, kafka: object) -> None:
    compare("kafka", ways.of_kafka(kafka), CASES[::every])
