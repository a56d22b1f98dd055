"""The program of the recorded bytes uses all that there is, so that whatever is new must be added to it."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
import numpy as np
import pytest
from pydantic import BaseModel

from bmq.errors import ControlCode, DeadLetterCode
from bmq.job.frame_rows import Kind as FrameKind
from bmq.records import Delta, Feed, Kind, Pattern, Reason, Status
from bmq.wire.definitions import read_definition
from bmq.wire.kinds import KINDS
from bmq.wire.state_bytes import unpack_delta
from tests.golden.play import all_recorded_pages
from tests.golden.program import BATCHES, FEEDS
from tests.golden.queries import EDITS, EVERY_QUERY, SILENT, WRONG_COMMANDS
from tests.golden.recording import Recording, read_recording

# (model, field), and (model, field, value) of each value that a `Literal` names.
Option = tuple[object, ...]


@pytest.fixture(scope="module")
def recorded() -> Recording:
    return read_recording()


# -- definitions ------------------------------------------------------------------------------------------------------


def options_of(model: type[BaseModel]) -> set[Option]:
    """Return every option of a model and of the models in it."""
    options: set[Option] = set()
    for name, field in model.model_fields.items():
        options.add((model, name))
        for part in parts_of([field.annotation, *field.metadata]):
            if isinstance(part, type) and issubclass(part, BaseModel):
                options |= options_of(part)
            elif get_origin(part) is Literal:
                options |= {(model, name, value) for value in get_args(part)}
    return options


def parts_of(types: Iterable[Any]) -> Iterator[Any]:
    for one in types:
        yield one
        if get_origin(one) is not Literal:
            yield from parts_of(get_args(one))


def options_in(read: BaseModel) -> set[Option]:
    """Return the options that a definition uses."""
    options: set[Option] = {(type(read), name) for name in read.model_fields_set}
    for name in type(read).model_fields:
        for value in values_in(getattr(read, name)):
            if isinstance(value, BaseModel):
                options |= options_in(value)
            elif isinstance(value, str | bool):
                options.add((type(read), name, value))
    return options


def values_in(value: object) -> Iterator[object]:
    match value:
        case Mapping():
            for one in value.values():
                yield from values_in(one)
        case list() | tuple():
            for one in value:
                yield from values_in(one)
        case _:
            yield value


def test_every_option_of_every_kind_of_query_is_used() -> None:
    definitions = [*EVERY_QUERY.values(), *EDITS.values(), *SILENT.values()]
    used = set().union(*(options_in(read_definition(definition)) for definition in definitions))

    missing = set().union(*(options_of(known.definition) for known in KINDS.values())) - used
    assert not missing, f"no definition of the program uses {missing}. Add one to a batch at the end of the program."


# They decide how a record becomes readings, and nothing behind that knows them. `test_feed_formats` and the property
# tests compare such readings with those of plain records.
OF_DECODING = {"schema", "registry", "more_topics", "constants", "topic_attribute", "readings"}


def test_every_option_of_a_feed_is_used() -> None:
    unused = [
        field.name
        for field in dataclasses.fields(Feed)
        if field.name not in OF_DECODING and all(getattr(feed, field.name) == field.default for feed in FEEDS.values())
    ]

    assert not unused, f"no feed of the program has {unused}. Add a feed that has."


# -- messages ---------------------------------------------------------------------------------------------------------


def events(recorded: Recording) -> list[dict[str, Any]]:
    """Return the events in layout `crossing`."""
    messages = map(json.loads, recorded.messages)
    topics = ("events", "bmq.mine")
    return [json.loads(one["value"]) for one in messages if one.get("topic") in topics and "layout" not in one]


def replies(recorded: Recording) -> list[dict[str, Any]]:
    return [json.loads(one["value"]) for one in map(json.loads, recorded.messages) if one.get("topic") == "replies"]


def test_every_event_there_can_be_is_recorded(recorded: Recording) -> None:
    found = events(recorded)

    assert {event["kind"] for event in found} == {kind.value for kind in Kind}
    assert {event.get("pattern") for event in found} >= {pattern.text for pattern in Pattern}
    for kind in (Kind.BORDER, Kind.BAND_JOIN):
        reasons = {event["reason"] for event in found if event["kind"] == kind}
        assert reasons == {reason.text for reason in Reason}, kind
    assert any("pass" in event for event in found)
    assert {event["sign"] for event in found if "confirmed_time" in event} == {"+", "-"}


def test_every_answer_to_a_command_is_recorded(recorded: Recording) -> None:
    found = replies(recorded)

    # `degraded` answers no command: it follows from what the broker says of a topic.
    assert {reply["status"] for reply in found} == {status.value for status in Status} - {Status.DEGRADED.value}
    assert {reply["error"]["code"] for reply in found if "error" in reply} == {code.value for code in ControlCode}


def test_only_wrong_commands_are_refused(recorded: Recording) -> None:
    wrong = {(key or b"")[:256].decode(errors="replace") for key, _ in WRONG_COMMANDS}

    assert {reply["query_id"] for reply in replies(recorded) if reply["status"] == "rejected"} == wrong


def test_every_code_of_a_dead_letter_and_members_that_come_and_go_are_recorded(recorded: Recording) -> None:
    messages = [json.loads(message) for message in recorded.messages]
    letters = [one["headers"]["code"] for one in messages if one.get("topic") == "dead-letter"]

    assert set(letters) == {code.value for code in DeadLetterCode}
    assert {one["value"] is None for one in messages if one.get("topic") == "membership"} == {True, False}


# -- state and frames -------------------------------------------------------------------------------------------------


def test_every_column_and_field_of_the_state_is_recorded(recorded: Recording) -> None:
    seen: set[tuple[type, str]] = set()
    there: set[tuple[type, str]] = {(Delta, field.name) for field in dataclasses.fields(Delta)}
    for packed in [*all_recorded_pages(recorded), *recorded_deltas(recorded)]:
        collect(unpack_delta(packed), there, seen)

    missing = there - seen
    assert not missing, f"the program gives these fields of the state no value of their own: {missing}"


def recorded_deltas(recorded: Recording) -> list[bytes]:
    return [msgspec.msgpack.decode(part.content)[2] for name, part in recorded.blobs.items() if name.endswith(" entry")]


def collect(record: object, there: set[tuple[type, str]], seen: set[tuple[type, str]]) -> None:
    """Add the fields of every dataclass in ``record`` to ``there``, and those that say something to ``seen``."""
    if isinstance(record, Mapping):
        record = tuple(record.values())
    if isinstance(record, tuple):
        for one in record:
            collect(one, there, seen)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            there.add((type(record), field.name))
            if says_something(value, field.default):
                seen.add((type(record), field.name))
            collect(value, there, seen)


def says_something(value: object, default: object) -> bool:
    """Return whether a field has another value than its default, or without one another than nothing."""
    if isinstance(value, np.ndarray):
        return bool(value.any())
    return bool(value) if default is dataclasses.MISSING else value != default


def test_every_kind_of_frame_is_recorded(recorded: Recording) -> None:
    kinds = {name.split()[3] for name in recorded.blobs if name.endswith("frame")}

    assert kinds == {kind.name.lower() for kind in FrameKind}


def test_the_record_is_of_this_program(recorded: Recording) -> None:
    assert len(recorded.inputs) == len(BATCHES)
