"""Where a span of a topic begins and ends: times or offsets on the command line, to an offset of each partition.

    "2026-05-09T08:00:00Z"    the first record of this timestamp or later, in each partition
    "1746777600000"           the same, epoch ms
    "0:1200,1:1180"           these offsets; each partition is named
    absent                    the first record that Kafka has; behind the last one

Knows offsets, and asks `kafka_io.topics` for them. It reads no records.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bmq.errors import ReadingError, ServiceError, SetupError
from bmq.kafka_io.topics import Topics
from bmq.wire.event_times import read_time_option

Offsets = Mapping[int, int]  # partition -> offset

_OFFSETS = re.compile(r"\d+:\d+(?:,\d+:\d+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SpanEnd:
    """One end of a span: a time, or offsets.

    Attributes
    ----------
    option : of the command line, for messages.
    time_ms : epoch ms; None: it is not a time.
    offsets : by partition; None: it is not offsets.
    """

    option: str
    time_ms: int | None = None
    offsets: Offsets | None = None


def read_span_end(option: str, text: str | None) -> SpanEnd:
    """Return the end that a text says; None: the end of what Kafka has.

    Raises
    ------
    ServiceError
        It is neither a time nor offsets, or a partition comes twice.
    """
    if text is None:
        return SpanEnd(option)
    if _OFFSETS.fullmatch(text):
        parts = [part.split(":") for part in text.split(",")]
        offsets = {int(partition): int(offset) for partition, offset in parts}
        if len(offsets) < len(parts):
            raise ServiceError(f"{option} is {text!r}, which names a partition twice. Name each once.")
        return SpanEnd(option, offsets=offsets)
    try:
        return SpanEnd(option, read_time_option(option, text))
    except ReadingError as error:
        raise ServiceError(f"{error}; or offsets, such as 0:1200,1:1180.") from None


def find_offsets(topics: Topics, topic: str, begin: SpanEnd, end: SpanEnd) -> dict[int, tuple[int, int]]:
    """Return partition -> first offset and the offset behind the last one. Four requests at most.

    Raises
    ------
    SetupError
        Kafka does not answer, or has no such topic.
    ServiceError
        An offset is not there, a partition is not named, or the span ends before it begins.
    """
    there = topics.begin_offsets([topic]).get(topic)
    if not there:
        raise SetupError(f"There is no topic {topic!r} on this Kafka. Name another with --topic, or another Kafka.")
    behind = topics.end_offsets([topic])[topic]
    limits = {partition: (there[partition], behind[partition]) for partition in there}
    firsts = _resolved(topics, topic, begin, limits, there)
    lasts = _resolved(topics, topic, end, limits, behind)
    for partition in limits:
        if lasts[partition] < firsts[partition]:
            raise ServiceError(
                f"Partition {partition} of topic {topic!r} would be read from offset {firsts[partition]} to "
                f"{lasts[partition]}, but a span ends behind its begin. Correct {begin.option} or {end.option}."
            )
    return {partition: (firsts[partition], lasts[partition]) for partition in sorted(limits)}


def _resolved(
    topics: Topics, topic: str, end: SpanEnd, limits: Mapping[int, tuple[int, int]], default: Offsets
) -> Offsets:
    if end.time_ms is not None:
        found = topics.offsets_at(topic, end.time_ms)
        # Behind the last record that is committed, if no record is so late.
        return {partition: min(found.get(partition, behind), behind) for partition, (_, behind) in limits.items()}
    if end.offsets is None:
        return default
    if end.offsets.keys() != limits.keys():
        raise ServiceError(
            f"{end.option} names the partitions {', '.join(map(str, sorted(end.offsets)))}, but topic {topic!r} has "
            f"{', '.join(map(str, sorted(limits)))}. Name each of them once."
        )
    for partition, offset in end.offsets.items():
        first, behind = limits[partition]
        if not first <= offset <= behind:
            raise ServiceError(
                f"{end.option} is offset {offset} of partition {partition}, but topic {topic!r} has the offsets "
                f"{first} to {behind} there. Name one of these."
            )
    return end.offsets
