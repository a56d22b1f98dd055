"""A place with topics of its own on the shared broker, and the responder there."""

from collections.abc import Iterator

import pytest

from tests.kafka.pure_responder import Place, PureResponder, make_place


@pytest.fixture
def place(bootstrap_servers: str) -> Place:
    return make_place(bootstrap_servers)


@pytest.fixture
def service(place: Place) -> Iterator[None]:
    with PureResponder(place):
        yield
