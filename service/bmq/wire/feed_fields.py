"""The fields of a feed's records that a reading needs, in the order of the rows that a scan fills."""

from bmq.records import Feed

KEY = "@key"  # in place of a field: the record key is the stream id


def scanned_fields(feed: Feed) -> tuple[str, ...]:
    """Return the names of the fields: dimensions, event time, stream id, attributes.

    The dimensions come first, so that their numbers are the values of the readings without a copy. There is no field
    for the event time if it is the record's own timestamp, and no field for the stream id if it is the record key.
    """
    event_time = () if feed.event_time is None else (feed.event_time,)
    stream_id = () if feed.stream_id == KEY else (feed.stream_id,)
    return (*feed.dimensions, *event_time, *stream_id, *feed.attributes)
