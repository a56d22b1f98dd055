"""The ledger, checked at the end of every test that runs the whole service."""

from bmq.client.ledger import Ledger, Report
from tests.kafka_records import read_all


def read_ledger(bootstrap_servers: str, *topics: str) -> Report:
    """Return what breaks the ledger in topics that hold every event of a service; read by kafka-python."""
    ledger = Ledger(from_beginning=True)
    for topic in topics:
        for record in read_all(bootstrap_servers, topic):
            ledger.take(topic, record.value)
    return ledger.finish()


def must_be_whole(bootstrap_servers: str, *topics: str) -> None:
    """Fail where signs do not alternate, or an event came twice: delivery is exactly once, also over kills."""
    report = read_ledger(bootstrap_servers, *topics)
    assert report.faults == []
    assert report.n_foreign == 0
    assert report.repeats == []
