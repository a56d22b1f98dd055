"""Puts over streams that are known."""

import numpy as np
import pytest

from bmq.engines.feed.feed_engine import FeedEngine
from bmq.kernels.tables.hashing import hash_ids
from bmq.records import Feed, Ids, Installation, Readings, Reason, Region, RegionQuery

pytestmark = pytest.mark.unit


def test_a_thousand_puts_over_known_streams_are_one_change_of_the_border_index() -> None:
    engine = FeedEngine(Feed("f", "f", "id", ("x",), "ts"), Installation({}))
    data, starts = np.frombuffer(b"ab", dtype=np.uint8), np.arange(3, dtype=np.int64)
    times = np.array([1, 1], dtype=np.int64)
    engine.advance(Readings(Ids(starts, data, hash_ids(starts, data)), times, times, np.array([[1.0, 5.0]])), 1)

    found = [
        engine.put(RegionQuery(f"q{n}", n + 1, "f", Region((0.0,), (float(n),))), Reason.QUERY_REGISTERED)
        for n in range(1, 9)
    ]

    assert [0 if crossings is None else len(crossings) for crossings in found] == [0, 1, 1, 1, 1, 2, 2, 2]
    assert len(engine.tables.regions._to_register) == 8  # the readings that come next take them up together
    engine._check()
