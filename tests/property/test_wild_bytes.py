"""No bytes make a reader of records fail: it has a code for everything that is not what it reads."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bmq.client.messages import read_event, read_member, read_reply
from bmq.records import Feed, Format, Installation
from bmq.wire.control import parse_command
from bmq.wire.marks import parse_mark
from bmq.wire.readings import Decoder
from tests.wild_records import SPARKS_LIMIT_MS, WildRecord, WildRecords

N_RECORDS = 20
FEEDS = {
    "line": Feed("line", "topic-of-line", "id", ("x",), "ts"),
    "timed": Feed("timed", "topic-of-timed", "@key", ("x",)),
    "sheet": Feed("sheet", "topic-of-sheet", "id", ("x",), "ts", format=Format.CSV, attributes=("group",)),
    "marked": Feed("marked", "topic-of-marked", "id", ("x",), attributes=("ts", "tags"), max_future_ms=1_000),
}
DECODERS = {name: Decoder(feed) for name, feed in FEEDS.items()}


def any_records(seed: int) -> list[WildRecord]:
    wild = WildRecords(seed)
    return wild.for_feed(N_RECORDS) + wild.for_control(N_RECORDS, "line") + wild.for_clock(N_RECORDS, "line")


@given(seed=st.integers(0, 2**32))
def test_each_record_of_a_feed_is_a_reading_or_has_a_code(seed: int) -> None:
    records = any_records(seed)
    keys, values = (pa.array([getattr(record, part) for record in records], pa.binary()) for part in ("key", "value"))
    times = np.clip([record.timestamp for record in records], -SPARKS_LIMIT_MS, SPARKS_LIMIT_MS)

    for decoder in DECODERS.values():
        decoded = decoder.decode(keys, values, times)

        assert sorted([*decoded.rows.tolist(), *(bad.row for bad in decoded.bad)]) == list(range(len(records)))


@given(seed=st.integers(0, 2**32))
def test_each_other_record_is_read_or_is_not_what_is_read(seed: int) -> None:
    for record in any_records(seed):
        command = parse_command(record.key, record.value, 5, Installation(FEEDS, "bmq."))
        mark = parse_mark(record.value)

        assert command.offset == 5
        assert mark is None or record.value is not None
        for read in (read_event, read_reply, read_member):
            assert read(record.value or b"") is None
