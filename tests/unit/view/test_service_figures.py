"""Figures of the last seconds, from counters that begin anew with each start of the service."""

import dataclasses
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from bmq.view.figures import Figures, MetricsPlace, NoFigures, fetch_figures, read_figures, scrape
from bmq.view.minute_count import MinuteCount
from bmq.view.open_browser import open_browser
from bmq.view.service_figures import ServiceFigures
from tests.brokers import wait_until

PLACE = MetricsPlace(9108)


def counted(readings: float) -> Figures:
    return Figures(up=True, readings=readings, events=readings / 10, latency=((1.0, readings), (2.0, readings)))


def test_rates_are_those_of_the_last_ten_seconds() -> None:
    figures = ServiceFigures(PLACE, lambda _: None)

    for second in range(30):
        shown = figures.shown(float(second), counted(100 * second if second < 15 else 1400 + 500 * (second - 14)))

    assert shown["readings_rate"] == 500
    assert shown["events_rate"] == 50


def test_a_service_that_starts_again_has_no_negative_rates() -> None:
    figures = ServiceFigures(PLACE, lambda _: None)
    figures.shown(0.0, counted(1000))

    first = figures.shown(1.0, counted(10))
    second = figures.shown(2.0, counted(40))

    assert "readings_rate" not in first
    assert second["readings_rate"] == 30


def test_a_service_that_does_not_answer_is_unreachable_and_one_that_does_not_run_yet_is_starting() -> None:
    figures = ServiceFigures(PLACE, lambda _: None)

    assert figures.shown(0.0, None)["service"] == "unreachable"
    assert figures.shown(1.0, dataclasses.replace(counted(0), up=False))["service"] == "starting"
    assert figures.shown(2.0, counted(0))["service"] == "running"


def test_dead_letters_are_counted_by_their_reason() -> None:
    text = "".join(
        f'bmq_dead_letters_total{{feed="{feed}",code="{code}"}} {n}.0\n'
        for feed, code, n in (("a", "not_json", 2), ("b", "not_json", 3), ("b", "wrong_type", 1))
    )

    assert read_figures(f"# TYPE bmq_dead_letters_total counter\n{text}").dead_by_code == {
        "not_json": 5,
        "wrong_type": 1,
    }


@pytest.mark.parametrize(
    ("place", "url"),
    [
        (MetricsPlace(9108), "http://127.0.0.1:9108/metrics"),
        (MetricsPlace(9108, address="https://bmq.example/metrics"), "https://bmq.example/metrics"),
        (MetricsPlace(9108, "::1"), "http://[::1]:9108/metrics"),
        (MetricsPlace(9108, "bmq.example", certificate="c.pem"), "https://bmq.example:9108/metrics"),
    ],
)
def test_the_address_of_the_metrics_is_that_of_the_configuration(place: MetricsPlace, url: str) -> None:
    assert place.url == url


def test_a_count_of_a_minute_forgets_by_parts_of_five_seconds() -> None:
    count = MinuteCount()
    for second in range(120):
        count.add(float(second))

    assert 55 <= count.total(119.0) <= 60
    assert 25 <= count.total(149.0) <= 30
    assert count.total(500.0) == 0


def test_without_a_screen_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("webbrowser.open", opened.append)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)

    open_browser("http://a/")
    monkeypatch.setenv("DISPLAY", ":0")
    open_browser("http://b/")

    assert opened == ["http://b/"]


ANSWERS = {
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", "BadStatusLine"),
    "half an answer": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbmq_up 1\n", "IncompleteRead"),
    "no code": (b"HTTP/1.1 200 OK\r\n\r\n# TYPE bmq_dead_letters_total counter\nbmq_dead_letters_total 1\n", "code"),
    "no text": (b"HTTP/1.1 200 OK\r\n\r\n\xff\xfe", "Unicode"),
    "no place": (b"HTTP/1.1 404 Not Found\r\n\r\n", "Not Found"),
    "nothing": (b"", "closed"),
}


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """Yield a port at which every request gets the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection:
                        connection.recv(10_000)
                        connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_that_is_not_of_a_service_is_no_figures_with_a_reason(kind: str) -> None:
    answer, reason = ANSWERS[kind]

    with answering(answer) as port:
        assert scrape(MetricsPlace(port)) is None
        with pytest.raises(NoFigures, match=reason):
            fetch_figures(MetricsPlace(port))


def test_the_health_is_asked_again_after_a_wrong_answer_and_has_the_reason() -> None:
    noted: list[dict[str, Any]] = []
    with answering(ANSWERS["no HTTP"][0]) as port:
        figures = ServiceFigures(MetricsPlace(port), noted.append)
        figures.start()
        wait_until(lambda: len(noted) > 1, "a second attempt")
        figures.stop()

    assert [one["service"] for one in noted[:2]] == ["unreachable"] * 2
    assert "BadStatusLine" in noted[0]["reason"]
