"""The one sentence that a failed streaming query is shown by; the causes are of Spark 4.2's form."""

import pytest

from bmq.job.failed_query import Cause, failure_sentence

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


QUERY = Cause("org.apache.spark.sql.streaming.StreamingQueryException", "[STREAM_FAILED] Query [id = 1].\n=== Plan ===")


def test_a_fault_of_the_jvm_is_shown_and_not_the_plan() -> None:
    sentence = failure_sentence([QUERY, Cause("java.lang.IllegalStateException", "Two of them")])

    assert sentence.startswith("The streaming query failed: Two of them. ")


def test_a_fault_in_python_is_shown_where_the_jvm_failed_to_write_to_the_worker() -> None:
    causes = [*in_worker("pyarrow.lib.ArrowInvalid: Take overflowed"), Cause("java.io.IOException", "Broken pipe")]

    assert "failed: pyarrow.lib.ArrowInvalid: Take overflowed. " in failure_sentence(causes)


def test_the_innermost_cause_with_words_is_shown() -> None:
    crashed = Cause("org.apache.spark.SparkException", "Python worker exited unexpectedly (crashed)")

    sentence = failure_sentence([QUERY, crashed, Cause("java.io.EOFException", "")])

    assert sentence.startswith("The streaming query failed: Python worker exited unexpectedly (crashed). ")


def test_a_full_disk_is_named_with_what_to_do() -> None:
    causes = [
        QUERY,
        Cause("org.apache.hadoop.fs.FSError", "x"),
        Cause("java.io.IOException", "No space left on device"),
    ]

    assert failure_sentence(causes).startswith("A disk is full (No space left on device). Make room where ")


LOADING = Cause("org.apache.spark.SparkException", "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.")


def test_a_state_file_that_is_gone_is_damage() -> None:
    sentence = failure_sentence(
        [QUERY, LOADING, Cause("java.io.FileNotFoundException", "File /c/3.zip does not exist")]
    )

    assert "missing or damaged: File /c/3.zip does not exist. Restore the whole checkpoint" in sentence


@pytest.mark.parametrize(
    "inner",
    [
        Cause("java.io.FileNotFoundException", "/c/3.zip (Permission denied)"),
        Cause("java.io.FileNotFoundException", "/c/3.zip (Too many open files)"),
        Cause("java.lang.OutOfMemoryError", "Java heap space"),
    ],
)
def test_a_whole_checkpoint_that_cannot_be_read_is_not_called_damaged(inner: Cause) -> None:
    sentence = failure_sentence([QUERY, LOADING, inner])

    assert sentence.startswith(f"The streaming query failed: {inner.message}. ")
    assert "damaged" not in sentence
