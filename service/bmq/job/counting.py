"""The counters of one batch and shard: its input, its output, and the size of the shard after the batch."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from bmq.job.outcome import ShardResult
from bmq.job.rendering import Output
from bmq.job.replicas import Head, state_bytes
from bmq.job.writing import Written
from bmq.metrics.counters import ShardCounters, count_latencies
from bmq.monitor.monitor import Monitor
from bmq.records import (
    Crossings,
    Family,
    Int8s,
    Int32s,
    Int64s,
    JoinedPairs,
    Kind,
    Reason,
    RegionQuery,
    Sign,
    present_kinds,
)
from bmq.wire.large_messages import EVENT_TOO_LARGE

EventLabels = tuple[str, str, str]  # kind, sign, reason


def count(output: Output, written: Written, monitor: Monitor, head: Head, *, is_rebuilt: bool) -> ShardCounters:
    """Return the counters of one batch and shard.

    Parameters
    ----------
    written : how the output was written.
    head : the head of the state after the batch.
    """
    frames, result = output.frames, output.result
    dead: dict[str, Counter[str]] = {}
    for letters in frames.dead_letters:
        for feed, code in zip(letters["feed"].to_pylist(), letters["code"].to_pylist(), strict=True):
            dead.setdefault(feed, Counter())[code] += 1
    for feed, n in written.too_large.items():
        dead.setdefault(feed, Counter())[EVENT_TOO_LARGE] += n
    events: Counter[EventLabels] = Counter()
    for crossings in result.crossings:
        events += count_events(crossings)
    for pairs in result.pairs:
        events += count_pairs(pairs)
    counters: ShardCounters = {
        "shard": output.shard,
        "readings": {feed: sum(map(len, parts)) for feed, parts in frames.readings.items()},
        "late": {feed: n for feed, n in result.late.items() if n},
        "lost": dict(frames.lost),
        "suppressed": {feed: n for feed, n in result.suppressed.items() if n},
        "dead_letters": {feed: dict(codes) for feed, codes in dead.items()},
        "events": [(*labels, n) for labels, n in events.items()],
        "replies": dict(Counter(reply.status.value for reply in output.replies(written.faults))),
        "queries": monitor.n_queries(),
        "tenants": monitor.n_queries_of_tenants(),
        "tenant_streams": monitor.n_streams_of_tenants(),
        "pending": monitor.n_pending(),
        "streams": monitor.n_streams(),
        "lagging": monitor.n_lagging(),
        "max_lags": result.max_lags,
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
    """Return the number of events of each kind, sign and reason.

    A transition event has no sign, and its pattern takes the place of the reason. A match or select event has neither.
    """
    counts: Counter[EventLabels] = Counter()
    for kind in present_kinds(crossings.kinds):
        are_of_kind = crossings.kinds == kind.number
        match kind.family:
            case Family.CROSSING:
                counts += _by_sign_and_reason(kind, crossings.signs[are_of_kind], crossings.reasons[are_of_kind])
            case Family.TRANSITION:
                counts += _by_pattern(kind, crossings.queries, crossings.query_rows[are_of_kind])
            case Family.LEVEL:
                counts[kind.value, "", ""] += int(np.count_nonzero(are_of_kind))
    return counts


def count_pairs(pairs: JoinedPairs) -> Counter[EventLabels]:
    """Return the number of events of joins of each kind, sign and reason.

    The event of a band join that reports queries has no sign. The event of a window join has neither.
    """
    counts: Counter[EventLabels] = Counter()
    kinds = pairs.kinds
    for kind in present_kinds(kinds):
        are_of_kind = kinds == kind.number
        if kind is Kind.WINDOW_JOIN:
            counts[kind.value, "", ""] += int(np.count_nonzero(are_of_kind))
        else:
            counts += _by_sign_and_reason(kind, pairs.signs[are_of_kind], pairs.reasons[are_of_kind])
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


def _by_pattern(kind: Kind, queries: Sequence[RegionQuery], query_rows: Int32s) -> Counter[EventLabels]:
    counts: Counter[EventLabels] = Counter()
    for query, n in zip(queries, np.bincount(query_rows, minlength=len(queries)).tolist(), strict=True):
        if n and query.pattern is not None:
            counts[kind.value, "", query.pattern.text] += n
    return counts
