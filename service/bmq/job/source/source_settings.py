"""What a source of topics needs to know, small and picklable: it travels to the planner and to the workers."""

from dataclasses import dataclass, field

from bmq.job.plan import Plan
from bmq.job.source.losses import OnLoss
from bmq.job.source.offsets import Offsets


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The part of the configuration that the source needs.

    Attributes
    ----------
    start_offsets : topic -> partition -> where a topic begins that the offset log does not have; it names the topics.
    max_records : the most records of a batch; None: all that are there.
    n_tasks : how many tasks run at once.
    on_loss : what follows if records are gone that were not read.
    max_bytes : the most bytes of the records of a batch, but for one record of each partition; None: no limit.
    whole_until : up to these offsets, a batch reads all that is there whatever its size.
    """

    plan: Plan
    start_offsets: Offsets
    max_records: int | None
    n_tasks: int
    on_loss: OnLoss
    max_bytes: int | None = None
    whole_until: Offsets = field(default_factory=dict)
