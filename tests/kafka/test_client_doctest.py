"""The example of the client's docstring, run word for word."""

import doctest
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from bmq.client import Client, Event, JoinEvent
from tests.kafka.pure_responder import PureResponder, make_place

pytestmark = pytest.mark.kafka


def test_the_example_of_the_client_prints_what_it_says(bootstrap_servers: str) -> None:
    place = make_place(bootstrap_servers)

    class ClientOfThisTest(Client):
        """Has this test's broker and topics in place of the usual ones; a stream enters once events are awaited."""

        def __init__(self, _: str) -> None:
            super().__init__(place.servers, topics=place.topics)

        def events(self, *arguments: Any, **options: Any) -> Iterator[Event | JoinEvent]:
            found = super().events(*arguments, **options)
            place.read(stocks={"AAPL": 40.25})
            return islice(found, 1)  # the example would wait for more until its time is over

    with PureResponder(place):
        result = doctest.testmod(sys.modules[Client.__module__], extraglobs={"Client": ClientOfThisTest})

    assert result.attempted > 0
    assert result.failed == 0
