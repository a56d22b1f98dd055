"""The events of some streams, as the service wrote them and as the definition says."""

import json
from typing import Any

import numpy as np

from bench.workload import SelectWorkload, Workload, stream_id
from bmq.kafka_io.topic_reader import Start, TopicReader

# Every square is asked about every reading: this many questions take some seconds.
QUESTIONS = 16_000_000

# (sign, query id, event time, reason), in the stream's order; sign and reason are empty in events of select queries
Ledger = list[tuple[str, str, int, str]]


def sampled_streams(workload: Workload) -> list[int]:
    """Return stream numbers spread over all, as many as all squares can be asked about."""
    n = max(2, QUESTIONS // (workload.n_rounds * workload.n_queries))
    return list(range(0, workload.n_streams, max(1, workload.n_streams // n)))[:n]


def expected_by_stream(workload: Workload, streams: list[int]) -> dict[str, Ledger]:
    """Return what the definition says of each stream: every square is asked about every reading."""
    if isinstance(workload, SelectWorkload):
        return _selected_by_stream(workload, streams)
    return _crossings_by_stream(workload, streams)


def _selected_by_stream(workload: SelectWorkload, streams: list[int]) -> dict[str, Ledger]:
    lo, hi = (corner[:, :, :, None] for corner in workload.alternatives())
    ids = [query_id for query_id, _ in workload.definitions()]
    in_order = sorted(range(len(ids)), key=lambda q: ids[q].encode())
    ledgers: dict[str, Ledger] = {stream_id(s): [] for s in streams}
    for event_time, xs, ys in workload.rounds():
        places = np.stack([xs[streams], ys[streams]])[:, None, None, :]
        holds = np.logical_and.reduce((lo <= places) & (places < hi), axis=0).any(axis=1)[in_order]
        for column in np.flatnonzero(holds.any(axis=0)).tolist():
            found = [ids[in_order[row]] for row in np.flatnonzero(holds[:, column]).tolist()]
            ledgers[stream_id(streams[column])] += [("", query_id, event_time, "") for query_id in found]
    return ledgers


def _crossings_by_stream(workload: Workload, streams: list[int]) -> dict[str, Ledger]:
    lo, hi = (corner[:, :, None] for corner in workload.squares())
    ids = [query_id for query_id, _ in workload.definitions()]
    rank = np.argsort(np.argsort(np.array([query_id.encode() for query_id in ids])))
    ledgers: dict[str, Ledger] = {stream_id(s): [] for s in streams}
    before: np.ndarray[tuple[int, int], np.dtype[np.bool_]] | None = None
    for event_time, xs, ys in workload.rounds():
        places = np.stack([xs[streams], ys[streams]])[:, None, :]
        inside = np.logical_and.reduce((lo <= places) & (places < hi), axis=0)
        was = np.zeros_like(inside) if before is None else before
        reason = "first_seen" if before is None else "moved"
        for sign, crossed in (("-", was & ~inside), ("+", inside & ~was)):
            for column in np.flatnonzero(crossed.any(axis=0)).tolist():
                queries = np.flatnonzero(crossed[:, column])
                ledger = ledgers[stream_id(streams[column])]
                ledger += [(sign, ids[q], event_time, reason) for q in queries[np.argsort(rank[queries])].tolist()]
        before = inside
    return ledgers


def events_by_stream(bootstrap: str, topic: str, streams: list[int]) -> tuple[dict[str, Ledger], int]:
    """Return what the topic says of each stream, and how many records it has in all."""
    ledgers: dict[str, Ledger] = {stream_id(s): [] for s in streams}
    n_events = 0
    with TopicReader({"bootstrap.servers": bootstrap}, topic, Start.BEGINNING) as reader:
        for message in reader.to_end():
            n_events += 1
            ledger = ledgers.get((message.key() or b"").decode())
            if ledger is not None:
                ledger += _entries(json.loads(message.value() or b""))
    return ledgers, n_events


def _entries(event: dict[str, Any]) -> Ledger:
    """Return the entries of one record: several in the layout `reading`, one in the layout `crossing`."""
    event_time, reason = event["event_time"], event.get("reason", "")
    if "entered" in event:
        crossed = [("-", query_id) for query_id in event["left"]] + [("+", query_id) for query_id in event["entered"]]
    else:
        crossed = [(event.get("sign", ""), event["query_id"])]
    return [(sign, query_id, event_time, reason) for sign, query_id in crossed]
