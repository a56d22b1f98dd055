"""What the source of the feeds needs to know, small and picklable: it travels to the planner and to the workers."""

from dataclasses import dataclass

from bmq.job.plan import Plan
from bmq.job.source.losses import OnLoss
from bmq.job.source.offsets import Offsets
from bmq.records import Feed


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The part of the configuration that the source needs.

    Attributes
    ----------
    start_offsets : topic -> partition -> where a topic begins that the offset log does not have.
    max_readings : the most records of a batch.
    n_tasks : how many tasks run at once.
    """

    plan: Plan
    start_offsets: Offsets
    max_readings: int
    n_tasks: int
    on_loss: OnLoss

    def topics(self) -> list[str]:
        """Return the topics of all feeds."""
        return [feed.topic for feed in self.plan.feeds.values()]

    def feed_of(self, topic: str) -> Feed:
        """Return the feed that reads a topic."""
        return self.plan.feed_by_topic()[topic]
