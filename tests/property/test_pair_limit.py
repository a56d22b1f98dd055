"""A band join is refused exactly if more pairs would begin at its put than allowed, whatever the shards."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bmq.records import Installation, Limits
from tests.programs import JOIN_SERVED
from tests.pure_service import PureService
from tests.strategies_joins import join_definitions

pytestmark = pytest.mark.property

FEEDS = ("left", "right")
definitions = st.sampled_from([("left", "right"), ("right", "left")]).flatmap(
    lambda feeds: join_definitions((feeds,), ("band_join",))
)
readings = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["a", "b", "c", "d", "é"]),
            "price": st.integers(0, 5),
            "depth": st.integers(0, 5),
            "group": st.sampled_from(["x", "y", None, 1]),
            "size": st.sampled_from([1, 2, None]),
        }
    ),
    min_size=2,
    max_size=8,
)


@given(
    batches=st.lists(st.tuples(readings, readings), min_size=1, max_size=2),
    definition=definitions,
    n_shards=st.sampled_from([1, 2, 3]),
    more=st.sampled_from([-1, 0, 1]),
)
def test_a_band_join_is_refused_if_it_would_begin_with_too_many_pairs(
    batches: Sequence[tuple[list[dict[str, Any]], ...]], definition: dict[str, Any], n_shards: int, more: int
) -> None:
    assume("ttl" not in definition and "expires_at" not in definition)  # one that has ended begins with no pair
    put = [("probe", json.dumps(definition).encode())]
    free = _with_readings(PureService(JOIN_SERVED, n_shards), batches)
    free.run_batch(put, {})
    n_pairs = sum(event.get("sign") == "+" for event in free.events)
    most = max(1, n_pairs + more)

    limited = _with_readings(
        PureService(Installation(JOIN_SERVED, "bmq.", limits=Limits(pairs=most)), n_shards), batches
    )
    limited.run_batch(put, {})

    (reply,) = limited.replies
    assert reply.get("error", {}).get("code") == ("over_limit" if n_pairs > most else None)


def _with_readings(service: PureService, batches: Sequence[tuple[list[dict[str, Any]], ...]]) -> PureService:
    for time, of_feeds in enumerate(batches):
        service.run_batch(
            [],
            {
                feed: [json.dumps(reading | {"ts": 1_000 + time}).encode() for reading in of_feed]
                for feed, of_feed in zip(FEEDS, of_feeds, strict=True)
            },
        )
    return service
