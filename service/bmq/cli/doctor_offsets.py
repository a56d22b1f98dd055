"""The doctor's look at the readings that come next: whether Kafka still has them, in the same topics."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from bmq.cli.findings import Finding, Level
from bmq.config import Config
from bmq.job.checkpoint import last_position
from bmq.job.source.losses import loss_sentence
from bmq.job.source.offsets import Loss, Position, Range, losses
from bmq.kafka_io.topics import Topics


def look_at_offsets(config: Config, topics: Topics, checkpoint: Path) -> Iterator[Finding]:
    """Return a finding for the offsets of the last batch, or one for each loss; none if there was no batch.

    Parameters
    ----------
    checkpoint : its folder, on this machine.
    """
    last = last_position(checkpoint)
    names = [topic for feed in config.feeds.values() for topic in feed.every_topic if topic in last.offsets]
    if not names:
        return
    ends = topics.ends(names)
    begins = topics.begin_offsets(names)
    ids = {name: end.id for name, end in ends.items() if end.id is not None}
    lost = list(_losses(last, Position({name: end.offsets for name, end in ends.items()}, ids), begins))
    level = Level.FAIL if config.job.on_data_loss == "stop" else Level.WARN
    way_out = (
        'The service will not start. Set job.on_data_loss = "continue" to go on with what is there.'
        if level is Level.FAIL
        else "The service goes on with what is there, and counts the loss."
    )
    for at in lost:
        assert at.loss is not None
        sentence = loss_sentence(at.loss, at.topic, at.partition, at.expected, at.start)
        yield Finding(level, "offsets", f"{sentence} {way_out}")
    if not lost:
        yield Finding(Level.OK, "offsets", f"Kafka has all that comes after the last batch ({len(names)} topics)")


def _losses(last: Position, available: Position, begins: Mapping[str, Mapping[int, int]]) -> Iterator[Range]:
    found = losses(Position({name: last.offsets[name] for name in available.offsets}, last.ids), available)
    yield from found
    others = {(at.topic, at.partition) for at in found}
    for topic, partitions in begins.items():
        for partition, first in partitions.items():
            expected = last.offsets[topic].get(partition, 0)
            if expected < first and (topic, partition) not in others:
                yield Range(topic, partition, first, first, Loss.DELETED, expected)
