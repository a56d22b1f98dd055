"""Joins that compare texts keep those of readings that are there, and not all that ever were."""

import json

from bmq.engines.band.band_channels import KEYS_MIN
from bmq.records import Feed
from tests.pure_service import PureService

FEEDS = {name: Feed(name, name, "id", ("x",), "ts", attributes=("group",), join=True) for name in ("left", "right")}
BAND = {
    "kind": "band_join",
    **{"left": "left", "right": "right", "on": {"left": "x", "right": "x"}, "band": [-1, 1]},
    "equal": {"left": "group", "right": "group"},
}
PER_BATCH = 20_000


def reading(stream: str, time: int, group: str) -> bytes:
    return json.dumps({"id": stream, "ts": time, "x": 1.0, "group": group}).encode()


def test_texts_of_former_readings_are_forgotten_and_pairs_go_on() -> None:
    service = PureService(FEEDS, n_shards=1)
    n_batches = KEYS_MIN // PER_BATCH + 2
    service.run_batch([("q", json.dumps(BAND).encode())], {"right": [reading("b", 0, "kept"), reading("c", 0, "last")]})
    for batch in range(n_batches):
        groups = [*(f"g{PER_BATCH * batch + i}" for i in range(PER_BATCH)), "kept"]
        service.run_batch([], {"left": [reading("a", batch, group) for group in groups]})
    service.run_batch([], {"left": [reading("a", n_batches, "last")]})
    service.check()

    (pair,) = service._monitors[0]._joins._pairs.values()
    assert len(pair.band._keys) < 2 * PER_BATCH
    signs = [(event["sign"], event["right"]["stream_id"]) for event in service.events]
    assert signs == [*[("+", "b"), ("-", "b")] * n_batches, ("+", "c")]
