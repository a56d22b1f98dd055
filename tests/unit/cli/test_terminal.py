"""What a terminal and a log show of text that came from Kafka."""

import io
import json
import logging
import sys
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmq.cli.log_lines import JsonFormatter, PlainFormatter
from bmq.cli.terminal import plain, show_line, show_lines

FORGED = "s1\n+ s2 entered q\x1b[2J\x9b2J\u202edrow"


def test_a_forged_line_stays_in_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_line(FORGED)
    show_line(FORGED, err=True)

    shown = capsys.readouterr()
    assert shown.out == shown.err == "s1\\u000a+ s2 entered q\\u001b[2J\\u009b2J\\u202edrow\n"


def test_lines_of_our_own_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_lines("a\n  b\x07")

    assert capsys.readouterr().out == "a\n  b\\u0007\n"


@given(st.text())
def test_json_means_the_same_after_it(text: str) -> None:
    shown = plain(json.dumps({"id": text}, ensure_ascii=False))

    assert json.loads(shown) == {"id": text}
    assert plain(shown) == shown


def test_usual_text_is_as_it_was() -> None:
    usual = 'Zürich, 東京, שלום: 😀 ~ \\ "q"'
    assert plain(usual) == usual


def test_a_message_of_the_log_is_one_line() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PlainFormatter("%(message)s"))
    handler.emit(logging.LogRecord("bmq", logging.INFO, "", 0, "topic %s", (FORGED,), None))

    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


def test_a_message_as_json_is_an_object_on_one_line() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    try:
        raise ValueError(FORGED)
    except ValueError:
        error = sys.exc_info()
    handler.emit(logging.LogRecord("bmq", logging.WARNING, "", 0, "topic %s", (FORGED,), error))

    (line,) = stream.getvalue().splitlines()
    said = json.loads(line)
    assert {name: said[name] for name in ("level", "logger", "message")} == {
        "level": "WARNING",
        "logger": "bmq",
        "message": f"topic {FORGED}",
    }
    assert datetime.fromisoformat(said["time"]).tzinfo is not None
    assert said["traceback"].endswith(f"ValueError: {FORGED}")
    assert "\x1b" not in line
