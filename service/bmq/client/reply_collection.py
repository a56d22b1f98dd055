"""Collects the replies to commands that were published together. Knows the replies topic."""

import time
from collections.abc import Callable, Mapping

from bmq.client.messages import ReplyMessage, read_reply
from bmq.errors import SetupError
from bmq.kafka_io.topic_reader import TopicReader

OnReply = Callable[[ReplyMessage], None]


def collect_replies(
    reader: TopicReader, offsets: Mapping[str, int], wait: float, on_reply: OnReply | None
) -> dict[str, ReplyMessage]:
    """Return the reply to each command, by query id.

    Parameters
    ----------
    reader : at a position before the first reply.
    offsets : the control offset of each command. It distinguishes the reply from that to another client's command for
        the same query id.
    wait : seconds without one of these replies until the service counts as stopped. The service reads many commands in
        several batches, so it may take several times as long until the last reply.
    on_reply : is called with each reply.

    Raises
    ------
    SetupError
        No reply came in time. The commands stay published.
    """
    replies: dict[str, ReplyMessage] = {}
    deadline = time.monotonic() + wait
    while len(replies) < len(offsets):
        before = deadline
        for message in reader.follow(before):
            reply = read_reply(message.value() or b"")
            if reply is not None and offsets.get(reply.query_id) == reply.control_offset:
                replies[reply.query_id] = reply
                deadline = time.monotonic() + wait
                if on_reply is not None:
                    on_reply(reply)
            if len(replies) == len(offsets):
                break
        else:
            if deadline == before:
                raise _unanswered(offsets, replies, wait)
    return replies


def _unanswered(offsets: Mapping[str, int], replies: Mapping[str, ReplyMessage], wait: float) -> SetupError:
    missing = next(query_id for query_id in offsets if query_id not in replies)
    return SetupError(
        f"{len(offsets) - len(replies)} of {len(offsets)} commands were not answered within {wait:g} s, "
        f"among them {missing!r}, published at control offset {offsets[missing]}. "
        "Is the service running? Start it (bmq serve --config config/local.toml): it will find them."
    )
