"""The one sentence that a failed streaming query is told by; the reports are of Spark 4.2's form."""

import pytest

from bmq.job.service import failure_sentence

HEAD = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 1 in "
    "stage 7.0 failed 4 times, most recent failure: Lost task 1.3 in stage 7.0 (TID 9) (executor driver): "
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n'
)
TAIL = "\n\n\tat org.apache.spark.api.python.Runner.handle(Runner.scala:1)\n\nDriver stacktrace: SQLSTATE: XXKST"


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        ("bmq.errors.StateError: the checkpoint holds state of format 9.", "the checkpoint holds state of format 9."),
        (
            "bmq.kafka_io.connect.Unreachable: No Kafka answers at k:1. Start one.",
            "No Kafka answers at k:1. Start one.",
        ),
    ],
)
def test_an_error_of_ours_is_told_in_its_own_words(raised: str, sentence: str) -> None:
    assert failure_sentence(HEAD + raised + TAIL) == sentence


def test_an_error_nobody_foresaw_is_told_with_its_name() -> None:
    sentence = failure_sentence(HEAD + "pyarrow.lib.ArrowInvalid: Take operation overflowed" + TAIL)

    assert "pyarrow.lib.ArrowInvalid: Take operation overflowed" in sentence
    assert "BMQ_DEBUG=1" in sentence


def test_lost_records_are_not_told_as_nothing_lost() -> None:
    sentence = failure_sentence("[KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE] Some data may have been lost")

    assert "no longer has records" in sentence
    assert "Nothing is lost" not in sentence
