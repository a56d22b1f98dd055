"""Recorded readings in pieces: what every input gives and the replay applies; and what gets the events."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from bmq.library.local_shard import Events
from bmq.records import Clock, Readings

T = TypeVar("T")

# Rows of one batch of the engine. Larger ones need more memory; smaller ones repeat the fixed cost of a batch, which is
# some milliseconds.
BATCH_ROWS = 200_000

HOW_TO_DROP = "Or drop and count such rows with --bad-readings drop."  # in errors


@dataclass(frozen=True, slots=True)
class Piece:
    """Readings that follow each other, which become one batch of the engine.

    Attributes
    ----------
    readings : None: there are none.
    done : how much of the input is read with this piece, in the unit of `Source.total`.
    bad : reason -> number of rows or records that are not readings.
    clock : the earliest and latest event time of the batch, if only a part of its readings is here; None: all are.
    """

    readings: Readings | None
    done: int
    bad: Counter[str] = field(default_factory=Counter)
    clock: Clock | None = None


class Source(Protocol):
    """An input: files, or a span of a topic."""

    @property
    def total(self) -> int:
        """How large the input is, for the progress bar: bytes or offsets."""

    def pieces(self) -> Iterator[Piece]:
        """Yield the readings in order."""


class Sink(Protocol):
    """An output, which gets the events of a replay."""

    def write(self, events: Events) -> None:
        """Write the events of one step, which are in order."""

    def finish(self) -> None:
        """Return when all events are where they belong."""

    def abandon(self) -> None:
        """Leave nothing behind, as far as possible: the replay failed."""


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the items, while a thread gets the next one: Arrow reads files without Python's lock."""
    nothing = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = pool.submit(next, items, nothing)
            yield item  # type: ignore[misc]  # what is not `nothing` is an item
