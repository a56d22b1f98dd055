"""The fields of a feed's records that readings are made of, and the order of the rows that a scan fills."""

from bmq.records import Feed

KEY = "@key"  # in place of a field: the record key is the stream id


def scanned_fields(feed: Feed) -> tuple[str, ...]:
    """Return the names of the fields: dimensions, event time, stream id, attributes.

    The dimensions are first, so that their numbers are the values of the readings without a copy. Event time and stream
    id are absent if the record, or its key, has them.
    """
    event_time = () if feed.event_time is None else (feed.event_time,)
    stream_id = () if feed.stream_id == KEY else (feed.stream_id,)
    return (*feed.dimensions, *event_time, *stream_id, *feed.attributes)
