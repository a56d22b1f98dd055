"""The one sentence that a failed streaming query is shown by; the causes are of Spark 4.2's form."""

import pytest

from bmq.job.failures import Cause, failure_sentence

HEAD = (
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: Task 1 in "
    "stage 7.0 failed 4 times, most recent failure: Lost task 1.3 in stage 7.0 (TID 9) (executor driver): "
    "org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 1, in main\n'
)
TAIL = "\n\n\tat org.apache.spark.api.python.Runner.handle(Runner.scala:1)\n\nDriver stacktrace: SQLSTATE: XXKST"


def in_worker(raised: str) -> list[Cause]:
    return [
        Cause("org.apache.spark.sql.streaming.StreamingQueryException", HEAD + raised + TAIL),
        Cause("org.apache.spark.api.python.PythonException", f"Traceback (most recent call last):\n{raised}\n"),
    ]


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        ("bmq.errors.StateError: the checkpoint holds state of format 9.", "the checkpoint holds state of format 9."),
        (
            "bmq.kafka_io.connect.Unreachable: No Kafka answers at k:1. Start one.",
            "No Kafka answers at k:1. Start one.",
        ),
        ("bmq.job.source.losses.DataLost: Topic 'a': gone. Set it.", "Topic 'a': gone. Set it."),
    ],
)
def test_an_error_of_ours_is_shown_in_its_own_words(raised: str, sentence: str) -> None:
    assert failure_sentence(in_worker(raised)) == sentence


def test_an_error_nobody_foresaw_is_shown_with_its_name() -> None:
    sentence = failure_sentence(in_worker("pyarrow.lib.ArrowInvalid: Take operation overflowed"))

    assert sentence.startswith("The streaming query failed: pyarrow.lib.ArrowInvalid: Take operation overflowed. ")
    assert "BMQ_DEBUG=1" in sentence


def test_a_fault_of_the_jvm_is_shown_and_not_the_plan() -> None:
    plan = "=== Streaming Query ===\nCurrent State: ACTIVE\n\nLogical Plan:\n   +- LocalRelation <empty>"
    causes = [
        Cause("org.apache.spark.sql.streaming.StreamingQueryException", f"[STREAM_FAILED] Query [id = 1].\n{plan}"),
        Cause("java.lang.IllegalStateException", ""),
    ]

    assert failure_sentence(causes).startswith("The streaming query failed: java.lang.IllegalStateException. ")
