"""Figures of the last seconds, from counters that begin anew with each start of the service."""

import dataclasses

import pytest

from bmq.view.figures import Figures, MetricsPlace, read_figures
from bmq.view.minute_count import MinuteCount
from bmq.view.open_browser import open_browser
from bmq.view.service_figures import ServiceFigures

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
