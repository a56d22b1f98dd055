"""What the service writes for a fixed program is what was recorded, byte by byte; a new layout has a new FORMAT."""

import dataclasses

import msgspec
import pytest

from bmq.wire.state_bytes import pack_delta, unpack_delta
from tests.golden.compare import layout_fault, message_fault, refusal, restart_fault
from tests.golden.play import (
    N_SHARDS,
    SNAPSHOTS_AFTER,
    all_recorded_pages,
    new_monitor,
    play,
    recorded_pages,
)
from tests.golden.recording import Blob, Recording, read_recording
from tests.golden.rows import without_order

LAYOUTS = ("state", "checkpoint", "frames")
PART = {"state": "01 shard 0 entry", "checkpoint": "00 origin", "frames": "01 shard 0 readings plane 0 frame"}


@pytest.fixture(scope="module")
def recorded() -> Recording:
    return read_recording()


@pytest.fixture(scope="module")
def now() -> Recording:
    return play()


def test_every_message_is_the_recorded_one(recorded: Recording, now: Recording) -> None:
    fault = message_fault(recorded, now)

    assert fault is None, fault


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_with_the_recorded_format_has_the_recorded_bytes(
    recorded: Recording, now: Recording, layout: str
) -> None:
    fault = layout_fault(layout, recorded, now)

    assert fault is None, fault


def test_a_batch_that_a_new_worker_runs_over_the_recorded_state_gives_the_recorded_messages(
    recorded: Recording,
) -> None:
    fault = restart_fault(recorded, play(before=recorded))

    assert fault is None, fault


@pytest.mark.parametrize("shard", range(N_SHARDS))
@pytest.mark.parametrize("batch", SNAPSHOTS_AFTER)
def test_a_monitor_of_recorded_pages_has_a_snapshot_of_the_same_rows(
    recorded: Recording, batch: int, shard: int
) -> None:
    pages = [unpack_delta(page) for page in recorded_pages(recorded, shard, batch)]
    monitor = new_monitor(shard)
    for page in pages:
        monitor.apply_delta(page)

    assert without_order(list(monitor.snapshot())) == without_order(pages)


@pytest.mark.parametrize("shard", range(N_SHARDS))
@pytest.mark.parametrize("batch", SNAPSHOTS_AFTER)
def test_a_monitor_of_all_recorded_deltas_has_a_snapshot_of_the_same_rows(
    recorded: Recording, batch: int, shard: int
) -> None:
    monitor = new_monitor(shard)
    for number in range(batch + 1):
        entry = recorded.blobs.get(f"{number:02} shard {shard} entry")
        if entry is not None:
            monitor.apply_delta(unpack_delta(msgspec.msgpack.decode(entry.content)[2]))

    pages = [unpack_delta(page) for page in recorded_pages(recorded, shard, batch)]
    assert without_order(list(monitor.snapshot())) == without_order(pages)


def test_a_recorded_delta_that_is_read_and_written_again_has_the_same_bytes(recorded: Recording) -> None:
    pages = all_recorded_pages(recorded)

    assert pages
    assert [pack_delta(unpack_delta(page)) for page in pages] == pages


# -- what the record refuses ------------------------------------------------------------------------------------------


def with_other_bytes(recording: Recording, layout: str) -> Recording:
    """Return the recording with another byte in one part of a layout."""
    part = recording.blobs[PART[layout]]
    other = Blob(part.of, part.content[:-1] + bytes([part.content[-1] ^ 1]))
    return dataclasses.replace(recording, blobs=recording.blobs | {PART[layout]: other})


def with_format(recording: Recording, layout: str, number: int) -> Recording:
    return dataclasses.replace(recording, formats=recording.formats | {layout: (number, "somewhere")})


@pytest.mark.parametrize("layout", ["state", "frames"])
def test_other_bytes_with_the_same_format_are_a_fault_and_are_not_recorded(now: Recording, layout: str) -> None:
    changed = with_other_bytes(now, layout)
    number, module = now.formats[layout]

    fault = layout_fault(layout, now, changed)
    assert fault is not None
    assert PART[layout] in fault
    assert f"The layout of the {layout} changed but FORMAT is still {number}. Raise FORMAT in {module} and run" in fault
    assert refusal(now, changed) == fault


@pytest.mark.parametrize("layout", LAYOUTS)
def test_another_format_is_a_fault_until_it_is_recorded(now: Recording, layout: str) -> None:
    changed = with_format(now, layout, 99)

    assert layout_fault(layout, now, changed) == (
        f"FORMAT of the {layout} is 99, but the record is of FORMAT {now.formats[layout][0]}: "
        "run `python -m tests.golden` to record anew."
    )
    assert refusal(now, changed) is None


def test_a_new_format_of_one_layout_lets_no_other_layout_change(now: Recording) -> None:
    changed = with_format(with_other_bytes(now, "frames"), "state", 99)

    assert refusal(now, changed) == layout_fault("frames", now, changed)


def test_a_batch_that_is_added_to_the_program_may_be_recorded(now: Recording) -> None:
    name = f"{len(now.inputs):02} shard 0 entry"
    longer = dataclasses.replace(now, inputs=[*now.inputs, "more"], blobs=now.blobs | {name: Blob("state", b"\x90")})

    fault = layout_fault("state", now, longer)
    assert fault is not None
    assert "The program of the record differs from here on" in fault
    assert refusal(now, longer) is None


def test_another_message_is_shown_beside_the_recorded_one(now: Recording) -> None:
    changed = dataclasses.replace(now, messages=[*now.messages[:3], "{}", *now.messages[4:]])

    fault = message_fault(now, changed)
    assert fault is not None
    assert fault.startswith("message 4 of the program differs")
    assert f"recorded  {now.messages[3]}\n  now       {{}}" in fault


def test_a_message_that_is_missing_at_the_end_is_a_fault(now: Recording) -> None:
    changed = dataclasses.replace(now, messages=now.messages[:-1])

    assert "now       no message" in (message_fault(now, changed) or "")
