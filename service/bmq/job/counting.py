"""The counters of one batch and shard: what it received and said, and how large the shard is after it."""

import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

from bmq.job.outcome import ShardResult
from bmq.job.received import Frames
from bmq.job.replicas import Head, state_bytes
from bmq.metrics.counters import ShardCounters, count_latencies
from bmq.monitor.monitor import Monitor
from bmq.records import Crossings, Int8s, Int64s, JoinedPairs, Kind, Reason, Sign

EventLabels = tuple[str, str, str]  # kind, sign, reason


def count(
    shard: int, frames: Frames, result: ShardResult, monitor: Monitor, head: Head, *, is_rebuilt: bool
) -> ShardCounters:
    """Return the counters of one batch and shard."""
    dead: dict[str, Counter[str]] = {}
    for letters in frames.dead_letters:
        for feed, code in zip(letters["feed"].to_pylist(), letters["code"].to_pylist(), strict=True):
            dead.setdefault(feed, Counter())[code] += 1
    events: Counter[EventLabels] = Counter()
    for crossings in result.crossings:
        events += count_events(crossings)
    for pairs in result.pairs:
        events += count_pairs(pairs)
    left_out = Counter(frames.late)  # they were read, too
    counters: ShardCounters = {
        "shard": shard,
        "readings": dict(Counter({feed: sum(map(len, parts)) for feed, parts in frames.readings.items()}) + left_out),
        "late": {feed: n for feed, n in result.late.items() if n},
        "suppressed": {feed: n for feed, n in result.suppressed.items() if n},
        "dead_letters": {feed: dict(codes) for feed, codes in dead.items()},
        "events": [(*labels, n) for labels, n in events.items()],
        "replies": dict(Counter(reply.status.value for reply in result.replies)) if shard == 0 else {},
        "queries": monitor.n_queries(),
        "pending": monitor.n_pending(),
        "streams": monitor.n_streams(),
        "clocks": monitor.clocks(),
        "visits": dict(result.visits),
        "useful": dict(result.useful),
        "state_bytes": state_bytes(head),
        "replica_rebuilds": int(is_rebuilt),
    }
    caused = [times[times >= 0] for times in _record_times(result)]
    if caused:
        counters["latency"] = count_latencies(time.time_ns() // 1_000_000 - np.concatenate(caused))
    return counters


def _record_times(result: ShardResult) -> Iterator[Int64s]:
    for crossings in result.crossings:
        yield crossings.record_times
    for pairs in result.pairs:
        yield pairs.record_times


def count_events(crossings: Crossings) -> Counter[EventLabels]:
    """Return how many events there are of each kind, sign and reason.

    Of a transition the sign is empty and the reason its pattern; of a match or select event both are empty.
    """
    has_sign = crossings.signs != Sign.NONE
    # Whatever has a sign is a crossing, also where the query that tells it has just become one of another kind.
    counts = _by_sign_and_reason(Kind.BORDER, crossings.signs[has_sign], crossings.reasons[has_sign])
    if not has_sign.all():
        per_query = np.bincount(crossings.query_rows[~has_sign], minlength=len(crossings.queries))
        for row in np.flatnonzero(per_query).tolist():
            query = crossings.queries[row]
            counts[query.kind.value, "", "" if query.pattern is None else query.pattern.text] += int(per_query[row])
    return counts


def count_pairs(pairs: JoinedPairs) -> Counter[EventLabels]:
    """Return how many events of joins there are of each kind, sign and reason.

    Of a band join that reports queries the sign is empty; of a window join both are.
    """
    is_band = np.array([query.kind is Kind.BAND_JOIN for query in pairs.queries], dtype=np.bool_)[pairs.query_rows]
    counts = _by_sign_and_reason(Kind.BAND_JOIN, pairs.signs[is_band], pairs.reasons[is_band])
    n_found = len(pairs) - int(np.count_nonzero(is_band))
    if n_found:
        counts[Kind.WINDOW_JOIN.value, "", ""] = n_found
    return counts


def _by_sign_and_reason(kind: Kind, signs: Int8s, reasons: Int8s) -> Counter[EventLabels]:
    codes = (signs - Sign.LEFT) * len(Reason) + reasons
    return Counter(
        {
            (kind.value, ("-", "", "+")[code // len(Reason)], Reason(code % len(Reason)).text): n
            for code, n in enumerate(np.bincount(codes).tolist())
            if n
        }
    )
