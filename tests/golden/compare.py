"""What differs between the record and a new run, in a message that says what to do; and when to refuse a new record.

The layouts of state, checkpoint and frames each have a FORMAT. Bytes may differ with another FORMAT, or if the program
differs; in no other case.
"""

import json
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa

from tests.golden.recording import AS_ABOVE, Recording

_ARROW_STREAM = b"\xff\xff\xff\xff"
_SHOWN = 300  # characters of a value that differs
RECORD_ANEW = "run `python -m tests.golden` to record anew"


def message_fault(recorded: Recording, now: Recording) -> str | None:
    """Return how the messages differ from the record; None: they do not."""
    if recorded.messages == now.messages:
        return None
    pairs = zip(recorded.messages, now.messages, strict=False)
    line = next(
        (i for i, (old, new) in enumerate(pairs) if old != new), min(map(len, (recorded.messages, now.messages)))
    )
    old, new = ((*messages, "no message")[line:][0] for messages in (recorded.messages, now.messages))
    return (
        f"message {line + 1} of the program differs from the record.\n  recorded  {old}\n  now       {new}\n"
        f"The record has {len(recorded.messages)} messages, and there are {len(now.messages)} now. Clients see every "
        f"byte of a message. If the change is meant, name it in the changelog and {RECORD_ANEW}."
    )


def restart_fault(recorded: Recording, now: Recording) -> str | None:
    """Return how the messages of a restarted run differ from the record, beyond an order that nobody promises.

    A restart brings the rows of a table, and the pairs of feeds, in another order. So only the order of the events of
    one stream is compared; of a join, of one left stream within its two feeds.
    """
    old, new = (_by_subject(recording.messages) for recording in (recorded, now))
    return _first(
        first_difference(old.get(subject), new.get(subject), subject) for subject in dict.fromkeys([*old, *new])
    )


def _by_subject(messages: Iterable[str]) -> dict[str, list[str]]:
    """Return what messages are about -> these messages, in their order."""
    by_subject: dict[str, list[str]] = {}
    for line in messages:
        message = json.loads(line)
        if "keys" in message or message["value"] == AS_ABOVE:
            continue  # the same events as others that are compared
        subject = [message.get(name) for name in ("batch", "shard", "topic", "layout", "key")]
        if message["headers"].get("kind", "").endswith("_join"):
            event = json.loads(message["value"])
            subject += [event[side]["feed"] for side in ("left", "right") if side in event]
        by_subject.setdefault(str(subject), []).append(line)
    return by_subject


def layout_fault(layout: str, recorded: Recording, now: Recording) -> str | None:
    """Return how the bytes of one layout differ from the record; None: they do not.

    Parameters
    ----------
    layout : "state", "checkpoint" or "frames".
    """
    old_format, (new_format, module) = recorded.formats[layout][0], now.formats[layout]
    if old_format != new_format:
        return f"FORMAT of the {layout} is {new_format}, but the record is of FORMAT {old_format}: {RECORD_ANEW}."
    changed = list(_changed(layout, recorded, now))
    if not changed:
        return None
    first = changed[0]
    difference = (
        f"{len(changed)} binary parts of the {layout} differ from the record. The first is {first!r}: "
        f"{_difference(first, recorded, now)}.\n"
    )
    if not any(_same_input(name, recorded, now) for name in changed):
        return f"{difference}The program of the record differs from here on: {RECORD_ANEW}."
    return (
        f"{difference}The layout of the {layout} changed but FORMAT is still {new_format}. Raise FORMAT in {module} "
        f"and {RECORD_ANEW}. If the layout is the same and only values differ, the service behaves differently: undo "
        "the change, or delete the folder of the record first, so that a review sees it."
    )


def refusal(recorded: Recording, now: Recording) -> str | None:
    """Return why the record must not be replaced by the new run; None: it may be."""
    for layout in now.formats:
        if recorded.formats[layout][0] != now.formats[layout][0]:
            continue
        if any(_same_input(name, recorded, now) for name in _changed(layout, recorded, now)):
            return layout_fault(layout, recorded, now)
    return None


def first_difference(old: object, new: object, place: str = "") -> str | None:
    """Return where two values differ first, and how; None: they do not. Both of dicts, lists, bytes and scalars."""
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            return f"at {place or 'the top'} the names were {_short(list(old))} and are {_short(list(new))}"
        return _first(first_difference(old[name], new[name], f"{place}.{name}") for name in old)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return _first(first_difference(*both, f"{place}[{i}]") for i, both in enumerate(zip(old, new, strict=True)))
    # Not ==: 1 and 1.0 have other bytes, and NaN has the same.
    return None if repr(old) == repr(new) else f"at {place or 'the top'} it was {_short(old)} and is {_short(new)}"


def _first(differences: Iterable[str | None]) -> str | None:
    return next((difference for difference in differences if difference is not None), None)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _changed(layout: str, recorded: Recording, now: Recording) -> Iterator[str]:
    for name in dict.fromkeys([*recorded.blobs, *now.blobs]):
        old, new = recorded.blobs.get(name), now.blobs.get(name)
        if old != new and layout in [blob.of for blob in (old, new) if blob is not None]:
            yield name


def _same_input(name: str, recorded: Recording, now: Recording) -> bool:
    """Return whether all that came in up to the batch of a part is that of the record."""
    batch = int(name.split()[0])
    return batch < min(len(recorded.inputs), len(now.inputs)) and recorded.inputs[batch] == now.inputs[batch]


def _difference(name: str, recorded: Recording, now: Recording) -> str:
    old, new = recorded.blobs.get(name), now.blobs.get(name)
    if old is None or new is None:
        return "the record has no such part" if old is None else "it is only in the record"
    difference = first_difference(_decoded(old.content), _decoded(new.content))
    if difference is not None:
        return difference
    return (
        f"what it holds is equal, but it is written in other bytes (the record is of {recorded.versions}, "
        f"this is of {now.versions})"
    )


def _decoded(content: bytes) -> object:
    """Return what a part holds, without help of the code that is under test; the bytes if nothing can read them."""
    try:
        return _read(content)
    except (msgspec.MsgspecError, pa.ArrowInvalid):
        return content


def _read(content: bytes) -> object:
    if content.startswith(_ARROW_STREAM):
        batch = pa.ipc.open_stream(content).read_next_batch()
        columns = {name: column.to_pylist() for name, column in zip(batch.schema.names, batch.columns, strict=True)}
        return {"schema": str(batch.schema), **columns, "buffers": [_buffers(column) for column in batch.columns]}
    if content.startswith(b"{"):
        return msgspec.json.decode(content)
    return _opened(msgspec.msgpack.decode(content)) if content else None


def _buffers(column: pa.Array) -> list[bytes | None]:
    return [None if buffer is None else buffer.to_pybytes() for buffer in column.buffers()]


def _opened(entry: object) -> object:
    """Return an entry of the state with its delta decoded, too."""
    match entry:
        case [bytes() as parent, bytes() as token, bytes() as delta]:
            return [parent, token, msgspec.msgpack.decode(delta)]
    return entry
