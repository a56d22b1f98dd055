"""Who may open the page, and who may change something with it."""

import dataclasses
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import typer
from starlette.requests import cookie_parser
from starlette.responses import Response

from bmq.cli.view import checked_url, printed_address
from bmq.config import load_config
from bmq.errors import SetupError
from bmq.view.figures import MetricsPlace
from bmq.view.live_page import PageOptions, address, check_token, live_page, tile_origin
from bmq.view.page_guard import PageGuard, host_name, security_headers

HERE = {"host": "127.0.0.1:8108", "x-bmq": "1"}


@pytest.mark.parametrize("host", ["127.0.0.1:8108", "localhost:8108", "[::1]:8108", "LOCALHOST"])
def test_without_a_token_this_machine_may_read_and_change(host: str) -> None:
    guard = PageGuard(8108)

    assert guard.may_read({"host": host}, {}) is None
    assert guard.may_change({"host": host, "x-bmq": "1", "origin": f"http://{host}"}, {}) is None


@pytest.mark.parametrize("host", ["", "evil.example:8108", "127.0.0.1.evil.example", "localhost@evil.example", "[::1"])
def test_a_name_of_others_that_leads_here_is_refused(host: str) -> None:
    refusal = PageGuard(8108).may_read({"host": host}, {})

    assert refusal is not None
    assert refusal.status == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_page_of_another_origin_may_change_nothing(headers: dict[str, str]) -> None:
    refusal = PageGuard(8108).may_change(HERE | headers, {})

    assert refusal is not None
    assert refusal.status == 403


def test_a_request_without_the_header_of_the_page_may_change_nothing() -> None:
    assert PageGuard(8108).may_change({"host": "127.0.0.1:8108"}, {}) is not None


def test_read_only_refuses_every_change_and_no_read() -> None:
    guard = PageGuard(8108, read_only=True)

    assert guard.may_read(HERE, {}) is None
    refusal = guard.may_change(HERE, {})
    assert refusal is not None
    assert "--read-only" in refusal.message


@pytest.mark.parametrize(
    ("headers", "cookies", "is_let_in"),
    [
        ({}, {"bmq_view_8108": "secret"}, True),
        ({"authorization": "Bearer secret"}, {}, True),
        ({}, {}, False),
        ({}, {"bmq_view_8108": "Secret"}, False),
        ({}, {"bmq_view_9999": "secret"}, False),
        ({"authorization": "Bearer "}, {"bmq_view_8108": ""}, False),
        ({"authorization": "Bearer sécret"}, {}, False),
    ],
)
def test_with_a_token_only_those_who_have_it_may_read(
    headers: dict[str, str], cookies: dict[str, str], is_let_in: bool
) -> None:
    guard = PageGuard(8108, "secret")

    refusal = guard.may_read({"host": "bmq.example"} | headers, cookies)

    assert (refusal is None) == is_let_in
    assert guard.may_change({"host": "bmq.example", "x-bmq": "1"} | headers, cookies) == refusal


def test_no_token_is_no_token_that_anybody_knows() -> None:
    assert not PageGuard(8108).knows("")


def test_the_policy_lets_nothing_in_but_the_tiles() -> None:
    policy = security_headers("https://tiles.example.org")["Content-Security-Policy"]

    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "img-src 'self' data: blob: https://tiles.example.org;" in policy
    assert policy.count("example.org") == 2


def test_the_origin_of_tiles_is_that_of_their_template() -> None:
    assert tile_origin("https://tiles.example.org:8443/{z}/{x}/{y}.png?key=1") == "https://tiles.example.org:8443"
    assert tile_origin("") == ""


@pytest.mark.parametrize(
    "tiles",
    [
        "tiles/{z}/{x}/{y}",
        "ftp://a/{z}/{x}/{y}",
        "https://a/{z}/{x}",
        "https://a; script-src */{z}/{x}/{y}",
        "https://{s}.tiles.example.org/{z}/{x}/{y}.png",
        "https://a/{z}/{x}/{y}{r}.png",
        "https://[a/{z}/{x}/{y}",
        "https://a:b/{z}/{x}/{y}",
        "https://a:99999/{z}/{x}/{y}",
        "https://a/{z}/{x}/{y",
    ],
)
def test_what_is_no_template_of_tiles_is_refused(tiles: str) -> None:
    with pytest.raises(SetupError, match="no template"):
        tile_origin(tiles)


def test_the_address_is_one_that_a_browser_can_open() -> None:
    assert address(PageOptions(), 8108) == "http://127.0.0.1:8108/"
    everywhere = PageOptions(host="0.0.0.0", token="t")  # noqa: S104, S106  # nothing listens here
    assert address(everywhere, 80) == "http://127.0.0.1:80/?token=t"
    assert address(PageOptions(host="::1"), 80) == "http://[::1]:80/"


def test_a_host_that_cannot_be_read_has_no_name() -> None:
    assert host_name("[") == ""


@pytest.mark.parametrize("token", ["a+b&c=d#e", "a%2Bb", "/?:@", 'semi;colon,"quoted"', "\\"])
def test_the_address_and_the_cookie_bring_every_sign_of_a_token(token: str) -> None:
    check_token(token)
    page = Response()
    page.set_cookie("name", token)

    (given,) = parse_qs(urlsplit(address(PageOptions(token=token), 80)).query)["token"]

    assert given == token
    assert cookie_parser(page.headers["set-cookie"])["name"] == token


@pytest.mark.parametrize("token", ["sécret", "ключ", "two words", "line\n"])
def test_a_token_that_no_cookie_can_have_is_refused_at_the_start(token: str) -> None:
    with pytest.raises(SetupError, match="token"):
        check_token(token)


def test_a_wrong_option_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[feeds.f]\ntopic = "f"\nstream_id = "id"\ndimensions = ["x"]\n')
    config = load_config(path)
    before = threading.active_count()

    for options in (PageOptions(tiles="https://[a"), PageOptions(token="é")):  # noqa: S106
        with (
            pytest.raises(SetupError),
            live_page(config, "127.0.0.1:1", dataclasses.replace(options, port=0), MetricsPlace(1)),
        ):
            pass

    assert threading.active_count() == before


def test_a_token_is_printed_only_if_nobody_knows_it_yet() -> None:
    assert printed_address("http://h:1/?token=new", is_made=True) == "http://h:1/?token=new"
    assert "mine" not in printed_address("http://h:1/?token=mine", is_made=False)
    assert printed_address("http://h:1/", is_made=False) == "http://h:1/"


@pytest.mark.parametrize(
    "metrics", ["localhost:9108", "http://a:b/metrics", "http://", "http://[a", "file:///etc/passwd"]
)
def test_an_address_of_metrics_that_is_none_is_wrong_usage(metrics: str) -> None:
    with pytest.raises(typer.BadParameter, match="address"):
        checked_url(metrics)


def test_an_address_of_metrics_may_have_any_host_and_path() -> None:
    assert checked_url("https://bmq.example/of/one/metrics") == "https://bmq.example/of/one/metrics"
    assert checked_url("") == ""
