"""The doctor's look at the clocks: records of the feeds whose timestamps are ahead of this machine's clock."""

import time
from collections.abc import Iterator

from bmq.cli.findings import Finding, Level
from bmq.config import Config
from bmq.kafka_io.topics import Topics

MOST_AHEAD_MS = 10_000


def look_at_clocks(config: Config, topics: Topics) -> Iterator[Finding]:
    """Return a finding for each topic with a record from the future, or one for all topics that have records.

    A clock that is behind cannot be seen: the records may be old.
    """
    latest = topics.latest_times(topic for feed in config.feeds.values() for topic in feed.every_topic)
    now = time.time_ns() // 1_000_000
    ahead = {topic: at - now for topic, at in latest.items() if at - now > MOST_AHEAD_MS}
    for topic, by in ahead.items():
        yield Finding(
            Level.WARN,
            "clocks",
            f"the newest record of {topic} is {by / 1000:,.0f} s ahead of the clock of this machine. `max_future` is "
            "judged by timestamps of records, and latencies in the metrics will be wrong. Set the clock of its "
            "producer, of the broker or of this machine right.",
        )
    if latest and not ahead:
        yield Finding(Level.OK, "clocks", f"no record is ahead of the clock of this machine ({len(latest)} topics)")
