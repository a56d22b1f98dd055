"""A CSV file against the service: a row is the reading that the service finds in the same line of a topic."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bmq.backtest.reading_files import ReadingFiles
from bmq.records import Feed, Format, Readings, TimeUnit
from bmq.records.column_records import concat
from bmq.wire.readings import Decoder

pytestmark = pytest.mark.property

TIMES = ["1700000000000", "1700000000000.75", "+17e11", "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.0019+01:00"]
WRONG_TIMES = ["", "17", "0x18BCFE56800", "noon", "2023-02-30T00:00:00Z", "99999999999999999999", "nan"]
NUMBERS = ["5", "-0", "+5.", ".5", " 7", "1e3", "1E-400", "123456789012345678901234567890"]
WRONG_NUMBERS = ["", "nan", "-inf", "1e999", "0x10", "five", "1_000", "5 6"]
ATTRIBUTES = ["", "north", "5", "5.0", " 5", "true", "nan", "1e999", "0x10", "2023-11-14", "ä", "null"]
UNITS = [None, TimeUnit.MS, TimeUnit.S, TimeUnit.NS]


def column(good: list[str], wrong: list[str]) -> st.SearchStrategy[str]:
    # Mostly good cells, so that whole columns are good, too.
    return st.sampled_from([*good * 4, *wrong])


rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "007", "1.50", "", "x" * 1025]),
        column(TIMES, WRONG_TIMES),
        column(NUMBERS, WRONG_NUMBERS),
        st.sampled_from(ATTRIBUTES),
    ),
    min_size=1,
    max_size=5,
)


@given(rows=rows, unit=st.sampled_from(UNITS))
@example(rows=[("a", "1700000000000", "5", "5"), ("a", "1700000000001", "6", "north")], unit=None)
@example(rows=[("a", "0x18BCFE56800", "5", "5")], unit=None)  # Arrow reads hexadecimal numbers, the service does not
def test_a_row_of_a_file_is_the_reading_of_the_same_line_of_a_topic(
    rows: Sequence[tuple[str, ...]], unit: TimeUnit | None
) -> None:
    feed = Feed("f", "t", "id", ("x",), "ts", Format.CSV, ("group",), event_time_unit=unit)
    lines = [",".join(row) for row in rows]
    decoded = Decoder(feed).decode(
        None, pa.array([line.encode() for line in lines], pa.large_binary()), np.zeros(len(lines), np.int64)
    )
    with TemporaryDirectory() as folder:
        file = Path(folder, "in.csv")
        file.write_text("\n".join(["id,ts,x,group", *lines, ""]))
        pieces = list(ReadingFiles([file], feed, "drop").pieces())

    found = [piece.readings for piece in pieces if piece.readings is not None]
    assert sum(piece.bad.total() for piece in pieces) == len(decoded.bad)
    assert (listed(concat(found)) if found else []) == listed(decoded.readings)


def listed(readings: Readings) -> list[tuple[object, ...]]:
    assert readings.attributes is not None
    ids = readings.ids
    texts = [bytes(ids.bytes[first:end]) for first, end in zip(ids.starts, ids.starts[1:], strict=False)]
    attributes = [readings.attributes.texts[code] for code in readings.attributes.codes]
    return list(zip(texts, readings.event_times.tolist(), readings.values[0].tolist(), attributes, strict=True))
