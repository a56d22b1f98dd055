"""Rows of records of columns: several records as one, and some rows of one."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pytest

from bmq.kernels.tables.hashing import hash_ids
from bmq.records import NEVER, Attributes, Crossings, Ids, Int32s, Int64s, JoinRows, Readings, Values
from bmq.records.arrays import Absent, RowsOf
from bmq.records.column_records import as_one, concat, take
from bmq.records.record_fields import fields_of


@dataclass(frozen=True, slots=True)
class Notes:
    """A record with a field of each sort."""

    topic: str
    ids: Ids
    texts: tuple[str, ...]
    text_rows: Annotated[Int32s, RowsOf("texts")]
    values: Values
    codes: Int32s | None = None
    times: Annotated[Int64s | None, Absent(NEVER)] = None

    def __len__(self) -> int:
        return self.text_rows.size


def ids_of(*texts: str) -> Ids:
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    utf8 = np.frombuffer(b"".join(encoded), np.uint8)
    return Ids(starts, utf8, hash_ids(starts, utf8))


def texts_of(ids: Ids) -> list[str]:
    assert (ids.hashes == hash_ids(ids.starts, ids.bytes)).all()
    return [ids.text(i) for i in range(len(ids))]


def notes(*streams: str, codes: Int32s | None = None, times: Int64s | None = None) -> Notes:
    n = len(streams)
    rows = np.arange(n, dtype=np.int32)
    values = np.arange(2.0 * n).reshape(2, n)
    return Notes("notes", ids_of(*streams), tuple(f"of {stream}" for stream in streams), rows, values, codes, times)


FOUR = notes("a", "", "é", "long enough", codes=np.arange(4, dtype=np.int32))


def test_parts_are_one_behind_the_other_and_their_rows_point_into_all_tables() -> None:
    whole = concat([notes("a", "b"), notes(), notes("ü")])

    assert (whole.topic, texts_of(whole.ids)) == ("notes", ["a", "b", "ü"])
    assert [whole.texts[row] for row in whole.text_rows] == ["of a", "of b", "of ü"]
    assert whole.text_rows.dtype == np.int32
    assert whole.values.tolist() == [[0.0, 1.0, 0.0], [2.0, 3.0, 1.0]]


def test_a_column_that_no_part_has_stays_absent_and_one_of_some_parts_is_filled_in() -> None:
    whole = concat([notes("a", "b"), notes("c", times=np.array([7]))])

    assert whole.codes is None
    assert whole.times is not None
    assert whole.times.tolist() == [NEVER, NEVER, 7]


def test_concat_copies_a_single_part_and_as_one_does_not() -> None:
    copy = concat([FOUR])

    assert as_one([FOUR]) is FOUR
    for name in ("text_rows", "values", "codes"):
        assert not np.shares_memory(getattr(copy, name), getattr(FOUR, name))
    assert copy.ids.bytes.flags.writeable
    assert not FOUR.ids.bytes.flags.writeable


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (np.array([3, 0, 3]), [3, 0, 3]),
        (np.array([2], dtype=np.int32), [2]),
        (np.array([True, False, True, False]), [0, 2]),
        (slice(1, 3), [1, 2]),
        (slice(2, None), [2, 3]),
        (slice(2, 9), [2, 3]),
        (np.empty(0, dtype=np.int64), []),
        (slice(4, 4), []),
    ],
)
def test_rows_are_taken_of_all_columns_and_tables_stay_whole(
    rows: np.ndarray[tuple[int], np.dtype[np.int64]] | slice, expected: list[int]
) -> None:
    taken = take(FOUR, rows)

    assert (taken.topic, taken.texts, taken.times) == (FOUR.topic, FOUR.texts, None)
    assert texts_of(taken.ids) == [FOUR.ids.text(row) for row in expected]
    assert taken.ids.starts[0] == 0
    assert taken.text_rows.tolist() == expected
    assert taken.codes is not None
    assert taken.codes.tolist() == expected
    assert taken.values.tolist() == FOUR.values[:, expected].tolist()


def test_positions_give_copies_as_kernels_want_them_and_a_range_gives_views() -> None:
    copy, view = take(FOUR, np.array([1, 2])), take(FOUR, slice(1, 3))

    assert copy.values.flags.c_contiguous
    assert copy.values.flags.writeable
    assert not np.shares_memory(copy.values, FOUR.values)
    assert np.shares_memory(view.values, FOUR.values)


def test_ids_may_begin_anywhere_in_their_buffer() -> None:
    later = take(FOUR.ids, slice(2, 4))
    cut = Ids(FOUR.ids.starts[2:], FOUR.ids.bytes, FOUR.ids.hashes[2:])

    assert texts_of(later) == texts_of(concat([cut])) == texts_of(take(cut, np.array([0, 1]))) == ["é", "long enough"]


def test_many_ids_are_gathered_in_several_steps() -> None:
    texts = [f"v{i}" for i in range(20_000)]
    rows = np.random.default_rng(20060509).permutation(20_000)

    assert texts_of(take(ids_of(*texts), rows)) == [texts[row] for row in rows]


def test_attributes_lose_what_no_row_uses_and_have_each_text_once() -> None:
    one = Attributes(np.array([2, 0, 2], np.int32), ("x", "unused", "y"))
    other = Attributes(np.array([1, 0], np.int32), ("y", "z"))

    whole = concat([one, other])

    assert [whole.texts[code] for code in whole.codes] == ["y", "x", "y", "z", "y"]
    assert whole.texts == ("x", "unused", "y", "z")
    assert take(whole, slice(1, 3)).texts == ("x", "y")
    assert take(whole, np.array([3])).texts == ("z",)


def test_annotations_say_what_a_field_is() -> None:
    by_name = {field.name: field for record in (Crossings, Readings, JoinRows) for field in fields_of(record)}

    assert [field.name for field in fields_of(Readings) if field.is_optional] == ["attributes", "partitions", "lags"]
    assert (by_name["query_rows"].dtype, by_name["query_rows"].rows_of) == (np.dtype(np.int32), "queries")
    assert by_name["queries"].is_table
    assert (by_name["passes"].absent, by_name["began"].absent) == (0, NEVER)
    assert by_name["values"].by_dimension
    assert (by_name["n_recounted"].dtype, by_name["n_recounted"].is_record) == (None, False)
    assert by_name["held"].type is Readings
