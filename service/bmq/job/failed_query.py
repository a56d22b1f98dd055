"""Why the streaming query failed, as one sentence for the operator: what, where, what became of the data, the way out.

Spark wraps a failure several times, and its last line is often a part of its plan. So this module walks from an
exception to its causes. Knows the exceptions of Spark and Hadoop, but neither topics nor state.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from bmq.errors import ServiceError

KEPT = "The checkpoint is at the last whole batch, and the service goes on there at its next start."
_WHOLE_REPORT = "BMQ_DEBUG=1 shows the whole report."
_LONGEST = 500  # characters of a message that nobody foresaw

# How Hadoop and Spark say that a file of the checkpoint is not as it was written.
_DAMAGE = (
    "org.apache.hadoop.fs.ChecksumException",
    "CANNOT_LOAD_STATE_STORE.CANNOT_READ_",
    "CANNOT_LOAD_STATE_STORE.CANNOT_FIND_BASE_SNAPSHOT",
    "CANNOT_LOAD_STATE_STORE.UNEXPECTED_FILE_SIZE",
    "STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
    "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
    "Failed to read log file",
    "Incomplete log file",
)
# Under this condition Spark also puts what has nothing to do with damage, so the innermost exception decides.
_STATE = "CANNOT_LOAD_STATE_STORE"
_SCHEMA = "/_stateSchema/"
_MISSING = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException", "java.io.EOFException")
_NOT_MISSING = ("Permission denied", "Too many open files")
_BAD_JSON = "com.fasterxml.jackson."  # Spark reads its own files so
_DISK_FULL = "No space left on device"
_NO_PYTHON = "Timed out while waiting for the Python worker to connect back"  # Spark waits for 10 s, without an option


class JobFailed(ServiceError):
    """The streaming query stopped by itself."""


class Cause(NamedTuple):
    """An exception of the JVM: its class and its message."""

    kind: str
    message: str


@contextmanager
def explained(file: str = "", kept: str = KEPT) -> Iterator[None]:
    """Raise JobFailed in the place of an exception of Spark, or of a file.

    Parameters
    ----------
    file : what Spark reads here, for an exception that names no file.
    kept : what became of the checkpoint.
    """
    try:
        yield
    except (CapturedException, Py4JJavaError) as error:
        raise JobFailed(failure_sentence(causes_of(error), file, kept)) from error
    except ConnectionError:
        raise  # the JVM has ended, and the caller says why
    except OSError as error:
        cause = Cause(type(error).__name__, str(error))
        raise JobFailed(failure_sentence([cause], file, kept)) from error


def causes_of(error: CapturedException | Py4JJavaError) -> list[Cause]:
    """Return the exceptions behind an error of PySpark, from the outermost to the innermost."""
    found: list[Cause] = []
    # PySpark keeps the text of the outermost alone.
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else error._origin  # noqa: SLF001
    while java is not None:
        found.append(Cause(java.getClass().getName(), java.getMessage() or ""))
        java = java.getCause()
    return found or [Cause(type(error).__name__, str(error))]


def failure_sentence(causes: Sequence[Cause], file: str = "", kept: str = KEPT) -> str:
    """Return the sentence for these causes, from the outermost to the innermost; the others as in `explained`."""
    text = "\n".join(f"{kind}: {message}" for kind, message in causes)
    ours = re.findall(r"^bmq(?:\.\w+)+: (.+)$", text, re.MULTILINE)
    if ours:
        return str(ours[-1])
    inner = next((line for _, message in reversed(causes) if (line := _first_line(message))), causes[-1].kind)
    if _DISK_FULL in text:
        return f"A disk is full ({inner}). Make room where job.checkpoint and the temporary files (TMPDIR) are. {kept}"
    if _NO_PYTHON in text:
        return (
            "The machine is too busy: a Python process that Spark started did not answer within 10 s. If the lines "
            "above have an error of Python, mend that; otherwise end other work there, or give the service more cores. "
            f"{kept}"
        )
    if _is_damage(causes, text):
        lines = [_first_line(cause.message) for cause in causes[1:] or causes]
        nameless = f"{file} ({inner})" if file else inner
        named = next((line for line in reversed(lines) if "/" in line), nameless)
        return (
            f"A file of the checkpoint is missing or damaged: {named}. Restore the whole checkpoint from one copy, "
            "with the hidden .crc files, or set job.checkpoint to a new folder: the queries come back from the control "
            f"topic, and what is inside a region enters it again. {_WHOLE_REPORT}"
        )
    # A failure in Python is often not the innermost: the JVM that still writes to the worker fails, too.
    python = re.findall(r"^(?:\w+\.)*\w*(?:Error|Exception|Invalid)\w*: .+$", _of_workers(causes), re.MULTILINE)
    what = python[-1] if python else inner
    return f"The streaming query failed: {what[:_LONGEST]}. {kept} {_WHOLE_REPORT}"


def _is_damage(causes: Sequence[Cause], text: str) -> bool:
    kind, message = causes[-1]
    is_missing = kind in _MISSING and not any(words in message for words in _NOT_MISSING)
    is_of_state = _STATE in text or _SCHEMA in message
    return any(sign in text for sign in _DAMAGE) or kind.startswith(_BAD_JSON) or (is_of_state and is_missing)


def _of_workers(causes: Sequence[Cause]) -> str:
    """Return the tracebacks of Python workers among the causes."""
    return "\n".join(message for kind, message in causes if kind.endswith(".PythonException"))


def _first_line(message: str) -> str:
    """Return the first line of a message, without the marks that Spark adds."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or [""]
    return re.sub(r"^\[[A-Z_.]+\] | *SQLSTATE: \w+", "", lines[0]).rstrip(" .")[:_LONGEST]
