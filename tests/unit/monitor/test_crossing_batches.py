"""Crossings cut into pieces and concatenated, and events of joins cut."""

import numpy as np
import pytest

from bmq.monitor.crossing_batches import cut_crossings, cut_pairs
from bmq.records import NEVER, Sign
from bmq.records.column_records import as_one
from tests.crossings import Row, make_crossings, query
from tests.joined_pairs import PairRow, join_query, make_pairs


def rows_of_causes(sizes: list[int]) -> list[Row]:
    """Return crossings of one reading after the other, so many of each."""
    return [
        Row(stream=f"v{time % 3}", query=query(f"q{n}", n + 1), event_time=time, sign=Sign.ENTERED)
        for time, size in enumerate(sizes)
        for n in range(size)
    ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pieces_hold_every_crossing_once_and_no_cause_is_cut(size: int) -> None:
    whole = make_crossings(rows_of_causes([3, 1, 1, 4, 2, 1]))

    pieces = list(cut_crossings(whole, size))

    times = [set(piece.event_times.tolist()) for piece in pieces]
    assert sum(map(len, times)) == len(set().union(*times)) == 6
    joined = as_one(pieces)
    assert np.array_equal(joined.event_times, whole.event_times)
    assert [joined.ids.text(i) for i in range(len(joined))] == [whole.ids.text(i) for i in range(len(whole))]
    assert [joined.queries[row] for row in joined.query_rows] == [whole.queries[row] for row in whole.query_rows]
    assert all(len(piece) >= min(size, len(whole)) for piece in pieces[:-1])


def test_what_only_some_parts_have_is_absent_in_the_rows_of_the_others() -> None:
    parts = [Row(), Row(visit=2), Row(confirmed_time=7), Row(sign=Sign.NONE, began=5)]

    joined = as_one([make_crossings([part]) for part in parts])

    assert joined.passes is not None
    assert joined.confirmed_times is not None
    assert joined.began is not None
    assert joined.passes.tolist() == [0, 2, 0, 0]
    assert joined.confirmed_times.tolist() == [NEVER, NEVER, 7, NEVER]
    assert joined.began.tolist() == [NEVER, NEVER, NEVER, 5]


def test_what_no_part_has_is_no_column() -> None:
    joined = as_one([make_crossings([Row()]), make_crossings([Row(event_time=1)])])

    assert (joined.passes, joined.confirmed_times, joined.began) == (None, None, None)


def test_nothing_is_no_piece() -> None:
    assert list(cut_crossings(make_crossings([]), 10)) == []
    assert list(cut_pairs(make_pairs([]), 10)) == []


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_pieces_hold_every_event_of_joins_once_in_their_order(size: int) -> None:
    rows = [
        PairRow(join_query(f"q{n % 2}"), left=f"l{n}" * n, right=f"{n}r", event_time=n, left_time=n, values=(n, 2 * n))
        for n in range(5)
    ]

    pieces = list(cut_pairs(make_pairs(rows), size))

    assert [len(piece) for piece in pieces[:-1]] == [size] * (len(pieces) - 1)
    found = [
        PairRow(
            piece.queries[piece.query_rows[i]],
            piece.left.ids.text(i),
            piece.right.ids.text(i),
            event_time=int(piece.event_times[i]),
            left_time=int(piece.left.event_times[i]),
            values=(piece.left.values[0, i], piece.right.values[0, i]),
        )
        for piece in pieces
        for i in range(len(piece))
    ]
    assert found == rows
