"""What `/health` answers, over HTTP, for each state of the service."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from bmq.metrics.endpoint import Place
from bmq.metrics.health import BROKER_LIMIT_SECONDS, Health
from bmq.metrics.metrics import Metrics

LIMIT = 600.0


class World:
    """A service that serves its health, and a clock that goes only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.health = Health(LIMIT, lambda: self.now)
        self.metrics = Metrics(Place(0), health=self.health)
        self.metrics.start()

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        try:
            with urlopen(f"http://127.0.0.1:{self.metrics.port}{path}", timeout=5) as response:
                return response.status, json.loads(response.read())
        except HTTPError as error:
            return error.code, json.loads(error.read())

    def codes(self) -> tuple[int, int, int]:
        """The codes of /health, /health/live and /health/ready."""
        health, live, ready = (self.get(f"/health{path}")[0] for path in ("", "/live", "/ready"))
        return health, live, ready

    def begin(self) -> None:
        self.health.begun()
        self.metrics.running()


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.metrics.stop()


def test_a_service_that_starts_lives_and_is_not_ready_before_its_first_batch(world: World) -> None:
    assert world.codes() == (503, 200, 503)
    world.health.begun()
    assert world.codes() == (503, 200, 503)
    world.metrics.running()
    assert world.codes() == (200, 200, 200)


def test_a_service_without_a_sign_for_too_long_is_dead(world: World) -> None:
    world.begin()
    world.now += LIMIT + 1

    assert world.codes() == (503, 503, 503)


@pytest.mark.parametrize("sign", ["idle", "batch"])
def test_a_sign_keeps_it_alive(world: World, sign: str) -> None:
    world.begin()
    world.now += LIMIT - 1
    getattr(world.health, sign)()
    world.now += LIMIT - 1

    assert world.codes() == (200, 200, 200)


def test_without_a_broker_it_lives_and_after_a_while_is_not_ready(world: World) -> None:
    world.begin()
    world.health.broker(answers=False)
    assert world.codes() == (200, 200, 200)
    world.now += BROKER_LIMIT_SECONDS
    world.health.broker(answers=False)
    assert world.codes() == (503, 200, 503)
    world.health.broker(answers=True)
    assert world.codes() == (200, 200, 200)


def test_a_service_that_has_ended_is_not_ready(world: World) -> None:
    world.begin()
    world.metrics.ended()
    world.now += 2 * LIMIT

    assert world.codes() == (503, 200, 503)


def test_the_answer_has_the_ages_in_seconds(world: World) -> None:
    world.begin()
    assert world.get("/health")[1]["last_batch_age_seconds"] is None
    world.metrics.batch(0.1)
    world.health.broker(answers=False)
    world.now += 7

    assert world.get("/health") == (
        200,
        {"live": True, "ready": True, "last_batch_age_seconds": 7.0, "broker_silent_seconds": 7.0},
    )
    with urlopen(f"http://127.0.0.1:{world.metrics.port}/metrics", timeout=5) as response:
        shown = response.read().decode()
    assert "bmq_last_batch_age_seconds 7.0" in shown
    assert "bmq_broker_silent_seconds 7.0" in shown


def test_another_path_below_it_is_not_there(world: World) -> None:
    assert world.get("/healthy")[0] == 404
