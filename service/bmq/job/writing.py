"""Writes the output of one shard and batch, and writes it once more if a topic was lost or refused a message's size.

Knows what may be wrong with a topic, but neither Kafka nor the contents of messages.
"""

import logging
import time
from collections import Counter
from typing import NamedTuple

from bmq.errors import SetupError
from bmq.job.rendering import Output
from bmq.kafka_io.output_topics import NO_FAULTS, TopicFaults
from bmq.kafka_io.sender import Fenced, TooLarge
from bmq.kafka_io.writer_process import RemoteWriter, WriterEnded

# Seconds for which the limit of a topic counts as known. Then somebody may have set it higher, and a message that is
# still too large costs one more attempt.
LIMIT_SECONDS = 600.0

_log = logging.getLogger(__name__)

# The limits that this process knows: (run id, topic) -> (bytes, when it was learnt).
_limits: dict[tuple[str, str], tuple[int, float]] = {}


def look(writer: RemoteWriter, output: Output) -> TopicFaults:
    """Return which topics of queries cannot be used; ask only if the batch needs one."""
    use = output.topic_use()
    return writer.look(use) if use.users else NO_FAULTS


class Written(NamedTuple):
    """How the messages were written.

    Attributes
    ----------
    faults : the topics of queries that could not be used.
    too_large : feed -> number of events that became dead letters for their size.
    """

    faults: TopicFaults
    too_large: Counter[str]


def write(writer: RemoteWriter, output: Output, faults: TopicFaults) -> Written:
    """Write the messages after `RemoteWriter.begin`; write all of them again if that may help.

    It may if a topic of a query was lost since the look, or refused a message for its size: its events go to the events
    topic. Likewise if the events topic refused one, which becomes a dead letter, or the dead-letter topic, where a
    letter loses its original. What was written before a failure is in a transaction that was aborted; without
    transactions each attempt writes again.

    Raises
    ------
    SetupError : to write again would not help.
    """
    while True:
        limits, too_large = _known_limits(output), Counter[str]()
        try:
            writer.write(output.render(faults, limits, too_large))
        except (Fenced, WriterEnded):
            raise
        except SetupError as error:
            before, faults = faults, look(writer, output)
            if faults.missing.keys() <= before.missing.keys() and not _learn(output, limits, error):
                raise
            writer.begin(output.run())
        else:
            if too_large:
                _log.warning(
                    "%d events became dead letters: topic %s accepts at most %d bytes in a record.",
                    too_large.total(),
                    output.plan.events_topic,
                    limits[output.plan.events_topic],
                )
            return Written(faults, too_large)


def _learn(output: Output, known: dict[str, int], error: SetupError) -> bool:
    """Return whether the next attempt differs: it has smaller batches, or a limit that was not known."""
    if not isinstance(error, TooLarge):
        return False
    if error.is_batch:
        return True
    if error.topic not in output.limited_topics() or known.get(error.topic) == error.limit:
        return False
    _limits[output.plan.run_id, error.topic] = error.limit, time.monotonic()
    return True


def _known_limits(output: Output) -> dict[str, int]:
    """Return topic -> bytes; forget what is of another run, or old."""
    run_id, oldest = output.plan.run_id, time.monotonic() - LIMIT_SECONDS
    for key in [key for key, (_, learnt) in _limits.items() if key[0] != run_id or learnt < oldest]:
        del _limits[key]
    return {topic: limit for (_, topic), (limit, _) in _limits.items()}
