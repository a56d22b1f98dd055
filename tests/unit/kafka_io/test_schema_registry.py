"""The client of the schema registry: what it returns, what it asks, and how it says that it cannot."""

import threading
from collections.abc import Iterator

import pytest

from bmq.errors import SetupError
from bmq.kafka_io.schema_registry import RegistryAddress, SchemaRegistry
from tests.registry import Registry

HIDDEN = "of-registry-5e0f"


@pytest.fixture
def registry() -> Iterator[Registry]:
    registry = Registry("reader", HIDDEN)
    registry.register(7, {"type": "record", "name": "R", "fields": []})
    registry.start()
    yield registry
    registry.stop()


def client(registry: Registry, path: str = "", hidden: str = HIDDEN, patience_seconds: float = 0.0) -> SchemaRegistry:
    return SchemaRegistry(RegistryAddress(registry.url + path, "reader", hidden), patience_seconds)


def test_a_schema_is_asked_for_once(registry: Registry) -> None:
    schemas = client(registry, path="/")

    assert {schemas.schema(7) for _ in range(3)} == {'{"type": "record", "name": "R", "fields": []}'}
    assert registry.asked == ["/schemas/ids/7"]


def test_an_id_that_the_registry_does_not_know_is_not_asked_for_again_at_once(registry: Registry) -> None:
    schemas = client(registry)

    for _ in range(3):
        with pytest.raises(ValueError, match="has none with this id"):
            schemas.schema(8)

    assert registry.asked == ["/schemas/ids/8"]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ({"schema": "message M {}", "schemaType": "PROTOBUF"}, "that is PROTOBUF, and the feed reads Avro"),
        ({"schema": "{}", "references": [{"name": "fleet.Location"}]}, "it refers to other schemas"),
        ({"schemaType": "AVRO"}, "that is AVRO"),
    ],
)
def test_an_answer_without_a_whole_avro_schema_is_no_schema(
    registry: Registry, answer: dict[str, object], shown: str
) -> None:
    registry.answers[9] = answer

    with pytest.raises(ValueError, match=shown):
        client(registry).schema(9)


def test_a_registry_that_comes_back_in_time_is_waited_for(registry: Registry) -> None:
    registry.stop()
    back = threading.Timer(0.3, registry.start)
    back.start()

    assert client(registry, patience_seconds=60.0).schema(7)
    back.join()


def test_a_registry_that_does_not_answer_is_no_unknown_schema(registry: Registry) -> None:
    schemas = client(registry)
    registry.stop()

    with pytest.raises(SetupError, match=f"{registry.url} does not answer .* goes on at this batch"):
        schemas.schema(7)
    registry.start()
    registry.status = 503
    with pytest.raises(SetupError, match="answers with 503"):
        schemas.schema(7)
    registry.status = 0
    assert schemas.schema(7)


@pytest.mark.parametrize(("status", "shown"), [(302, "not as a registry does"), (418, "not as a registry does")])
def test_an_answer_of_another_program_stops_the_service(registry: Registry, status: int, shown: str) -> None:
    registry.status = status

    with pytest.raises(SetupError, match=shown):
        client(registry, patience_seconds=60.0).schema(7)


def test_an_address_below_which_there_is_no_registry_stops_the_service(registry: Registry) -> None:
    schemas = client(registry, path="/apis")

    for ask in (lambda: schemas.schema(7), schemas.ping):
        with pytest.raises(SetupError, match=r"Set registry\.url"):
            ask()


def test_a_refused_user_stops_the_service_and_no_message_has_the_password(registry: Registry) -> None:
    schemas = client(registry, hidden="wrong-5e0f", patience_seconds=60.0)

    with pytest.raises(SetupError, match="does not let us in") as refused:
        schemas.schema(7)

    assert "5e0f" not in str(refused.value)
    assert "5e0f" not in repr(RegistryAddress(registry.url, "reader", HIDDEN))


def test_a_caller_that_can_do_without_does_not_wait(registry: Registry) -> None:
    schemas = client(registry, patience_seconds=60.0)
    registry.stop()

    with pytest.raises(ValueError, match="does not answer"):
        schemas.schema_at_once(7)
    registry.start()
    with pytest.raises(ValueError, match="did not answer"):
        schemas.schema_at_once(7)
    assert schemas.schema(7)  # what one caller can do without, another waits for
