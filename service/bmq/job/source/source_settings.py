"""What a source of topics needs to know, small and picklable: it travels to the planner and to the workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bmq.job.plan import Plan
from bmq.job.source.losses import OnLoss
from bmq.job.source.offsets import Offsets


@dataclass(frozen=True, slots=True)
class Bound:
    """How much of one topic a batch reads.

    Attributes
    ----------
    records, bytes : the most, but at least one record.
    whole_until : the records before this offset have no bound: they are read in one batch.
    """

    records: int
    bytes: int
    whole_until: int


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """The part of the configuration that the source needs.

    Attributes
    ----------
    start_offsets : topic -> partition -> where a topic begins that the offset log does not have; it names the topics.
    max_records : the most records of a batch; None: all that are there.
    n_tasks : how many tasks run at once.
    on_loss : what follows if records are gone that were not read.
    bounds : topic of one partition -> how much of it a batch reads.
    """

    plan: Plan
    start_offsets: Offsets
    max_records: int | None
    n_tasks: int
    on_loss: OnLoss
    bounds: Mapping[str, Bound] = field(default_factory=dict)
