"""The offsets of topics as Spark's offset log has them, and what a batch reads between two of them.

    {"stocks": {"0": 17, "1": 20}, "topic ids": {"stocks": "Zr3…"}}

The map of partitions is that of Spark's own Kafka source, so a checkpoint of that source goes on here. The ids
distinguish a topic from another one of the same name; no topic has a name with a space. Everything here follows from
the arguments, because a batch that runs again must read the same ranges.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

_IDS = "topic ids"

# A task costs some 20 milliseconds, and it drops what the client read beyond its range. So a partition is divided only
# if each part has more work than that.
SMALLEST_PART = 50_000

# To start and to end the read of a range takes as long as to decode this many records, some three milliseconds.
RANGE_COST = 5_000

Offsets = Mapping[str, Mapping[int, int]]  # topic -> partition -> the next offset


@dataclass(frozen=True, slots=True)
class Position:
    """A place in all topics of a source.

    Attributes
    ----------
    offsets : topic -> partition -> the next offset.
    ids : topic -> the id that the broker gave it; absent: not known yet, or the broker gives none.
    """

    offsets: Offsets
    ids: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Mapping[str, Any]]) -> "Position":
        """Return the position in a line of the offset log, of this source or of Spark's own."""
        return cls(
            {
                topic: {int(partition): offset for partition, offset in partitions.items()}
                for topic, partitions in document.items()
                if topic != _IDS
            },
            document.get(_IDS, {}),
        )

    def document(self) -> dict[str, dict[str, Any]]:
        """Return the position for the offset log: equal positions give equal texts, because Spark compares texts."""
        offsets: dict[str, dict[str, Any]] = {
            topic: {str(partition): offset for partition, offset in sorted(partitions.items())}
            for topic, partitions in sorted(self.offsets.items())
        }
        return offsets | {_IDS: dict(sorted(self.ids.items()))} if self.ids else offsets


class Loss(StrEnum):
    """Why records are gone that the service has not read."""

    DELETED = "deleted"  # the broker deleted the first records of a partition
    CUT_OFF = "cut off"  # the partition ends before the offset where the service was
    RECREATED = "recreated"  # the topic is another one of the same name


@dataclass(frozen=True, slots=True)
class Range:
    """A part of the work of one task: offsets ``[start, end)`` of one partition, behind a loss that comes first.

    Attributes
    ----------
    loss : what was lost before ``start``; None: nothing.
    expected : the first lost offset, if there is a loss.
    """

    topic: str
    partition: int
    start: int
    end: int
    loss: Loss | None = None
    expected: int = 0


def next_end(start: Position, available: Position, limit: int | None) -> Position:
    """Return where the batch that begins at ``start`` ends.

    A topic or partition that ``available`` does not have keeps its place.

    Parameters
    ----------
    limit : the most records of all partitions together, divided in proportion to what they have; None: no limit.
    """
    begins = {(at.topic, at.partition): at for at in _ranges(start, available)}
    sizes = {key: at.end - at.start for key, at in begins.items()}
    total = sum(sizes.values())
    if limit is not None and total > limit:
        begins = {key: replace(at, end=at.start + _share(sizes[key], limit, total)) for key, at in begins.items()}
    offsets = {topic: dict(partitions) for topic, partitions in start.offsets.items()}
    for topic in available.offsets:
        if _is_another(topic, start, available):
            offsets[topic] = {}
    for (topic, partition), at in begins.items():
        offsets.setdefault(topic, {})[partition] = at.end
    return Position(offsets, {**start.ids, **available.ids})


def plan_ranges(start: Position, end: Position, n_tasks: int) -> list[Range]:
    """Return the ranges between two positions; a partition that has much more than the others is divided.

    Parameters
    ----------
    n_tasks : how many tasks run at once.
    """
    ranges = [at for at in _ranges(start, end) if at.end > at.start or at.loss]
    share = max(SMALLEST_PART, math.ceil(sum(at.end - at.start for at in ranges) / n_tasks))
    return [part for at in ranges for part in _parts(at, share)]


def work_of_tasks(ranges: list[Range]) -> list[tuple[Range, ...]]:
    """Return the ranges that each task reads: one task reads several that together are smaller than SMALLEST_PART."""
    tasks: list[list[Range]] = []
    room = 0
    for at in ranges:
        cost = RANGE_COST + at.end - at.start
        if cost > room:
            tasks.append([])
            room = SMALLEST_PART
        tasks[-1].append(at)
        room -= cost
    return [tuple(task) for task in tasks]


def losses(start: Position, end: Position) -> list[Range]:
    """Return the ranges before which something was lost, as far as the two positions show it."""
    return [at for at in _ranges(start, end) if at.loss]


def _ranges(start: Position, end: Position) -> list[Range]:
    """Return one range for each partition of ``end``; it may be empty."""
    ranges = []
    for topic, partitions in sorted(end.offsets.items()):
        is_another = _is_another(topic, start, end)
        begins = {} if is_another else start.offsets.get(topic, {})
        for partition, after in sorted(partitions.items()):
            begin = begins.get(partition, 0)
            if is_another:
                lost = start.offsets.get(topic, {}).get(partition, 0)
                ranges.append(Range(topic, partition, 0, after, Loss.RECREATED, lost))
            elif after < begin:
                ranges.append(Range(topic, partition, after, after, Loss.CUT_OFF, begin))
            else:
                ranges.append(Range(topic, partition, begin, after))
    return ranges


def _is_another(topic: str, start: Position, end: Position) -> bool:
    before, after = start.ids.get(topic), end.ids.get(topic)
    return before is not None and after is not None and before != after


def _share(size: int, limit: int, total: int) -> int:
    """Return a partition's part of the limit: at least one record, so that none waits forever."""
    share = size * limit / total
    return min(size, math.floor(share) if share >= 1 else math.ceil(share))


def _parts(whole: Range, share: int) -> list[Range]:
    size = whole.end - whole.start
    n = max(1, round(size / share))
    bounds = [whole.start + size * i // n for i in range(n + 1)]
    first = replace(whole, end=bounds[1])
    return [first, *(Range(whole.topic, whole.partition, bounds[i], bounds[i + 1]) for i in range(1, n))]
