"""The page's server on a real broker: updates, commands, and requests that it refuses."""

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bmq.config import Config, load_config
from bmq.errors import SetupError
from bmq.view.figures import MetricsPlace
from bmq.view.live_page import PageOptions, live_page
from tests.brokers import wait_until
from tests.kafka.pure_responder import Place

pytestmark = pytest.mark.kafka

FORTIES = {"kind": "border", "feed": "stocks", "region": {"box": {"price": [40, 50]}}}
NOWHERE = MetricsPlace(1)  # no service has its metrics there
LIMIT_SECONDS = 30.0


@pytest.fixture
def config(place: Place, tmp_path: Path) -> Config:
    path = tmp_path / "c.toml"
    path.write_text(place.config_text())
    return load_config(path)


@pytest.fixture
def port(config: Config, place: Place, service: None) -> Iterator[int]:
    with live_page(config, place.servers, PageOptions(port=0), NOWHERE) as address:
        yield int(address.rstrip("/").rpartition(":")[2])


def ask(
    port: int, method: str, path: str, body: object = None, **headers: str
) -> tuple[int, Any, http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    own = {"X-BMQ": "1"} if method != "GET" else {}
    written = {name.replace("_", "-"): text for name, text in headers.items()}
    connection.request(method, path, None if body is None else json.dumps(body), own | written)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    kind = response.headers.get_content_type()
    return response.status, json.loads(text) if kind == "application/json" else text, response.headers


class Updates:
    """The stream of updates as a browser adds it up."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
        self._connection.request("GET", "/api/updates")
        self._response = self._connection.getresponse()
        self.setup: dict[str, Any] = {}
        self.events: list[tuple[str, str, str]] = []
        self.queries: dict[str, str] = {}
        self.prices: dict[str, float] = {}
        self._ids: dict[str, str] = {}

    def read_until(self, fact: Any, what: str) -> None:
        end = time.monotonic() + LIMIT_SECONDS
        while not fact(self):
            assert time.monotonic() < end, f"no update with {what}"
            name = ""
            while (line := self._response.readline().decode().rstrip("\n")) or not name:
                if line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    self._add(name, json.loads(line[6:]))

    def _add(self, name: str, sent: dict[str, Any]) -> None:
        if name == "setup":
            self.setup = sent
            return
        for feed in sent["feeds"].values():
            self._ids |= feed["born"]
            for slot, price in zip(feed["slots"], feed["values"][0], strict=True):
                self.prices[self._ids[str(slot)]] = price
        self.queries |= {query["id"]: query["status"] for query in sent["queries"]}
        for query_id in sent["gone"]:
            del self.queries[query_id]
        self.events += [(one["sign"], one["stream"], one["query"]) for one in sent["events"]]

    def close(self) -> None:
        self._response.close()
        self._connection.close()


def test_a_query_that_the_page_puts_is_answered_and_its_events_come_as_updates(port: int, place: Place) -> None:
    updates = Updates(port)
    updates.read_until(lambda seen: seen.setup, "the feeds")

    status, reply, _ = ask(port, "PUT", "/api/query?id=a%2Fb%20c", FORTIES)
    place.read(stocks={"AAPL": 45.0})
    place.read(stocks={"AAPL": 55.0})
    updates.read_until(lambda seen: len(seen.events) == 2 and seen.prices, "both events")
    _, details, _ = ask(port, "GET", "/api/query?id=a%2Fb%20c")
    gone, deleted, _ = ask(port, "DELETE", "/api/query?id=a%2Fb%20c")
    updates.read_until(lambda seen: not seen.queries, "the end of the query")
    updates.close()

    assert updates.setup["feeds"]["stocks"]["dimensions"] == ["price"]
    assert (status, reply["status"], reply["version"]) == (200, "accepted", 1)
    assert updates.events == [("+", "AAPL", "a/b c"), ("-", "AAPL", "a/b c")]
    assert updates.prices == {"AAPL": 55.0}
    assert [one["definition"] for one in details["versions"]] == [FORTIES]
    assert (gone, deleted["status"]) == (200, "deleted")


def test_a_wrong_definition_gets_the_services_error_and_is_not_published(port: int) -> None:
    wrong = FORTIES | {"region": {"box": {"price": [50, 40]}}}

    status, answer, _ = ask(port, "PUT", "/api/query?id=wrong", wrong)

    assert (status, answer["error"]["code"]) == (422, "bad_region")
    assert answer["error"]["message"].startswith("Lower border 50.0 of 'price' is above upper border 40.0.")
    assert ask(port, "GET", "/api/query?id=wrong")[0] == 404


def test_the_reply_of_the_service_itself_is_an_error_too(port: int) -> None:
    status, answer, _ = ask(port, "DELETE", "/api/query?id=never-there")

    assert (status, answer["error"]["code"]) == (422, "unknown_query")


def test_requests_of_other_pages_and_names_are_refused_and_change_nothing(port: int) -> None:
    refused = [
        ask(port, "PUT", "/api/query?id=q", FORTIES, Origin="http://evil.example")[0],
        ask(port, "PUT", "/api/query?id=q", FORTIES, X_BMQ="1", Sec_Fetch_Site="cross-site")[0],
        ask(port, "GET", "/api/updates", Host="evil.example")[0],
        ask(port, "GET", "/", Host="evil.example")[0],
        ask(port, "DELETE", "/api/query?id=q", Host=f"evil.example:{port}")[0],
        ask(port, "PUT", "/api/query?id=q", "x" * 1_000_100)[0],
    ]

    assert refused == [403, 403, 421, 421, 421, 413]
    assert ask(port, "GET", "/api/query?id=q")[0] == 404
    assert ask(port, "OPTIONS", "/api/query?id=q", Origin="http://evil.example")[0] == 405


def test_every_answer_has_the_policy_and_the_page_is_whole(port: int) -> None:
    for path in ("/", "/assets/index.js", "/api/query?id=q", "/nowhere"):
        status, body, headers = ask(port, "GET", path)
        assert "default-src 'none'" in headers["Content-Security-Policy"], path
        assert headers["X-Content-Type-Options"] == "nosniff"
        if path == "/":
            assert status == 200
            assert b"assets/index.js" in body
    assert ask(port, "GET", "/assets/index.js")[2].get_content_type() in ("text/javascript", "application/javascript")
    assert ask(port, "GET", "/assets/../../live_page.py")[0] == 404


def test_with_a_token_only_its_holder_reads_and_a_read_only_page_changes_nothing(config: Config, place: Place) -> None:
    options = PageOptions(port=0, token="secret", read_only=True)  # noqa: S106  # of this test alone
    with live_page(config, place.servers, options, NOWHERE) as address:
        base, _, query = address.partition("?")
        port = int(base.rstrip("/").rpartition(":")[2])
        without = ask(port, "GET", "/api/events")[0]
        _, _, headers = ask(port, "GET", f"/?{query}")
        cookie = headers["Set-Cookie"]
        with_cookie = ask(port, "GET", "/api/events", Cookie=cookie.partition(";")[0])[0]
        change = ask(port, "PUT", "/api/query?id=q", FORTIES, Cookie=cookie.partition(";")[0])[0]

    assert query == "token=secret"
    assert (without, with_cookie, change) == (401, 200, 403)
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()


def test_another_address_needs_a_token_and_a_taken_port_is_named(config: Config, place: Place, port: int) -> None:
    for options, message in ((PageOptions(host="192.0.2.1"), "token"), (PageOptions(port=port), f"127.0.0.1:{port}")):
        with (
            pytest.raises(SetupError, match=message),
            live_page(config, place.servers, options, NOWHERE),
        ):
            pass


def test_a_browser_that_reads_late_gets_the_last_prices_without_those_between(port: int, place: Place) -> None:
    sleeper, reader = Updates(port), Updates(port)

    for price in range(200):
        place.read(stocks={f"S{n}": float(price) for n in range(20)})
    reader.read_until(lambda seen: len(seen.prices) == 20 and set(seen.prices.values()) == {199.0}, "the last prices")
    sleeper.read_until(lambda seen: set(seen.prices.values()) == {199.0}, "the last prices, without those between")

    sleeper.close()
    reader.close()
    wait_until(lambda: ask(port, "GET", "/api/events")[0] == 200, "an answer after both have gone")
