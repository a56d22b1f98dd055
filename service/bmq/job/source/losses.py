"""What is said when Kafka no longer has records that the service has not read."""

from typing import Literal

from bmq.errors import ServiceError
from bmq.job.source.offsets import Loss

OnLoss = Literal["stop", "continue"]

_WAY_OUT = (
    'The service has stopped, and the checkpoint is at the last whole batch. Set job.on_data_loss = "continue" to go '
    "on with the records that are there, or job.checkpoint to a new folder to forget all streams."
)


class DataLost(ServiceError):
    """Records are gone that the service has not read, and the configuration says stop."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} {_WAY_OUT}")


def loss_sentence(loss: Loss, topic: str, partition: int, expected: int, first: int) -> str:
    """Return what was lost, as one sentence.

    Parameters
    ----------
    expected : the offset that the service would have read next.
    first : the offset that it can read next.
    """
    place = f"Topic {topic!r} partition {partition}: the service expected offset {expected}"
    match loss:
        case Loss.DELETED:
            return (
                f"{place}, and the first offset there is {first}: Kafka deleted {first - expected} offsets before the "
                "service read them (retention, or delete-records)."
            )
        case Loss.CUT_OFF:
            return f"{place}, and the partition ends at {first}: the broker lost the end of the partition."
        case Loss.RECREATED:
            return (
                f"{place}, and the topic was deleted and made anew since then: what the old topic had from there on "
                "is lost."
            )


def missing_sentence(topics: list[str]) -> str:
    """Return that topics were deleted, as one sentence."""
    return f"Kafka has no topic {', '.join(map(repr, topics))}, which the service has read before: it was deleted."
