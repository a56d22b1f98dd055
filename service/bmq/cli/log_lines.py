"""The log of `bmq serve` and `bmq broker` on stderr: a line for each message, as text or as JSON."""

import json
import logging
import os
from datetime import UTC, datetime
from typing import Literal

from bmq.cli.terminal import plain


class PlainFormatter(logging.Formatter):
    """Writes each message on one line, whatever is in it; a traceback has lines of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return plain(super().formatMessage(record))


class JsonFormatter(logging.Formatter):
    """Writes each message as an object of JSON on one line: time, level, logger, message, and a traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; the time is in UTC."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def debugging() -> bool:
    """Return whether BMQ_DEBUG asks for tracebacks and debug logs."""
    return os.environ.get("BMQ_DEBUG", "") not in ("", "0")


def is_json() -> bool:
    """Return whether each line on stderr is to be JSON."""
    return any(isinstance(handler.formatter, JsonFormatter) for handler in logging.getLogger().handlers)


def log_to_stderr(level: str = "info", form: Literal["text", "json"] = "text") -> None:
    """Send the log to stderr, unless somebody has set up logging already.

    Parameters
    ----------
    level : the least level that is shown; BMQ_DEBUG shows all.
    """
    handler = logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    if not debugging():
        handler.addFilter(_is_no_call)
    logging.basicConfig(level=logging.DEBUG if debugging() else level.upper(), handlers=[handler])
    # Their lines are for their own developers; py4j also raises whatever it logs.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger("bmq.kafka").setLevel(logging.WARNING)


def _is_no_call(record: logging.LogRecord) -> bool:
    """Return False for what py4j writes into the root log, with a traceback, when a call finds the JVM gone.

    The caller says it in a sentence, which would no longer be the last line.
    """
    return not (record.name == "root" and record.module == "java_gateway")
