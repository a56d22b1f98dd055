"""Writes the output of one shard and batch: with topics of queries that can be used, and once more if one is lost.

Knows what may be lost in between, but neither Kafka nor the contents of messages.
"""

from bmq.errors import SetupError
from bmq.job.rendering import Output
from bmq.kafka_io.batch_writer import Fenced
from bmq.kafka_io.output_topics import NO_FAULTS, TopicFaults
from bmq.kafka_io.writer_process import RemoteWriter, WriterEnded


def look(writer: RemoteWriter, output: Output) -> TopicFaults:
    """Return which topics of queries cannot be used; ask only if the batch needs one."""
    use = output.topic_use()
    return writer.look(use) if use.users else NO_FAULTS


def write(writer: RemoteWriter, output: Output, faults: TopicFaults) -> TopicFaults:
    """Write the messages after `RemoteWriter.begin`; if a topic was lost since the look, write all of them again.

    What was written before the failure is in a transaction that was aborted; without transactions it comes twice.

    Returns
    -------
    TopicFaults
        Those with which the messages were written.

    Raises
    ------
    SetupError : no topic of a query is the cause.
    """
    while True:
        try:
            writer.write(output.render(faults))
        except (Fenced, WriterEnded):
            raise
        except SetupError:
            before, faults = faults, look(writer, output)
            if faults.missing.keys() <= before.missing.keys():
                raise
            writer.begin(output.batch, output.head.marked, has_messages=output.has_messages)
        else:
            return faults
