"""Events as CloudEvents 1.0, in the two modes of its Kafka binding; and events as they are, without an envelope.

    binary       headers ce_id, ce_source, …, content-type; the value is the event, as without an envelope
    structured   the value is {"specversion": "1.0", "id": …, "data": the event}

The headers of an event without an envelope stay in front. Knows Arrow and the attributes of CloudEvents; the renderers
know what an event is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from bmq.records import Int64s
from bmq.wire.json_texts import quote
from bmq.wire.outgoing import concat_texts, header_column, message_batch

SPECVERSION = "1.0"
TYPE_PREFIX = "bmq."  # then the kind: bmq.border, bmq.match, …
JSON = "application/json"
_T = len("2023-11-14")  # where the time of the day begins
STRUCTURED_JSON = "application/cloudevents+json"


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """The envelope of events.

    Attributes
    ----------
    source : the attribute `source`, a URI reference. Together with the event id it identifies an event.
    """

    mode: Literal["binary", "structured"]
    source: str


def event_batch(
    messages: tuple[pa.Array, pa.Array, pa.Array],
    headers: Mapping[str, pa.Array | str],
    event_times: Int64s,
    envelope: CloudEvents | None,
) -> pa.RecordBatch:
    """Return events as messages.

    Parameters
    ----------
    messages : topics, keys and values: text or binary, n each; the values are JSON objects.
    headers : name -> string[n], or one text for all; with `event_id` and `kind`.
    event_times : int64[n], epoch milliseconds of the years 1 to 9999.
    envelope : None: the events as they are, at no cost.

    Returns
    -------
    RecordBatch of `outgoing.MESSAGE_SCHEMA`

    Raises
    ------
    pyarrow.ArrowCapacityError
        More than 2 GiB of text.
    """
    topics, keys, values = messages
    n = len(values)
    if envelope is not None:
        attributes = {
            "specversion": SPECVERSION,
            "id": headers["event_id"],
            "source": envelope.source,
            "type": concat_texts(n, TYPE_PREFIX, headers["kind"]),
            "time": _rfc_3339(event_times),
        }
        if envelope.mode == "binary":
            headers = {**headers, **{f"ce_{name}": text for name, text in attributes.items()}, "content-type": JSON}
        else:
            headers = {**headers, "content-type": STRUCTURED_JSON}
            values = _structured(n, attributes, values)
    return message_batch(topics, keys, values, header_column(n, tuple(headers), *headers.values()))


def _structured(n: int, attributes: Mapping[str, pa.Array | str], values: pa.Array) -> pa.Array:
    """Return each event as `data` of a JSON object of the attributes. Ids, types and times need no escapes."""
    pieces: list[pa.Array | str] = ["{"]
    for name, text in attributes.items():
        pieces += [f'"{name}":', *([quote(text)] if isinstance(text, str) else ['"', text, '"']), ","]
    return concat_texts(n, *pieces, f'"datacontenttype":"{JSON}","data":', values, "}")


def _rfc_3339(event_times: Int64s) -> pa.Array:
    """Return "2023-11-14T22:13:20.250Z" for each time."""
    # Arrow writes "2023-11-14 22:13:20.250". Its strftime, and its text of a time with a zone, take ten times as long.
    texts = pa.array(event_times).cast(pa.timestamp("ms")).cast(pa.string())
    return concat_texts(event_times.size, pc.utf8_replace_slice(texts, _T, _T + 1, "T"), "Z")
