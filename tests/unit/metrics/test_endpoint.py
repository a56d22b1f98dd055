"""The endpoint over TLS and with a password; what needs neither is in `test_health` and `test_metrics`."""

import shutil
import socket
import ssl
import subprocess
import urllib.error
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from bmq.config import Config
from bmq.errors import ConfigError, SetupError
from bmq.metrics.endpoint import Place
from bmq.metrics.metrics import Metrics
from tests.pages import get

pytestmark = pytest.mark.unit

PASSWORD = "only-prometheus-knows"  # noqa: S105 - of one test
FEED = {"topic": "line", "stream_id": "id", "dimensions": ["x"]}


@contextmanager
def served(place: Place) -> Iterator[int]:
    metrics = Metrics(place)
    metrics.start()
    try:
        yield metrics.port
    finally:
        metrics.stop()


def test_metrics_need_the_password_and_health_does_not() -> None:
    with served(Place(0, user="prometheus", password=PASSWORD)) as port:
        page = f"http://127.0.0.1:{port}/metrics"
        assert get(page, "prometheus", PASSWORD)[1].startswith("# HELP bmq_")
        status, text = get(page)
        assert (status, "metrics.password" in text, "bmq_" in text) == (401, True, False)
        assert get(page, "prometheus", "guess")[0] == 401
        assert get(page, "guess", PASSWORD)[0] == 401
        assert get(f"http://127.0.0.1:{port}/health")[0] in {200, 503}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for 127.0.0.1 and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not here")
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = str(folder / "certificate.pem"), str(folder / "key.pem")
    wanted = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-keyout", key, "-out", certificate, *wanted]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


def test_tls_shows_the_certificate_and_a_slow_client_holds_up_nobody(pair: tuple[str, str]) -> None:
    with served(Place(0, certificate=pair[0], key=pair[1])) as port:
        trusting = ssl.create_default_context(cafile=pair[0])
        with closing(socket.create_connection(("127.0.0.1", port))):  # it never begins the handshake
            status, text = get(f"https://127.0.0.1:{port}/metrics", context=trusting)
        assert (status, "bmq_up" in text) == (200, True)
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            get(f"https://127.0.0.1:{port}/metrics")


def test_a_certificate_that_cannot_be_read_is_named(pair: tuple[str, str], tmp_path: Path) -> None:
    for place in (Place(0, certificate="nowhere.pem", key=pair[1]), Place(0, certificate=pair[0], key=pair[0])):
        with pytest.raises(SetupError, match=r"certificate of the metrics cannot be used.*metrics\.key"):
            Metrics(place).start()


@pytest.mark.parametrize("given", ["certificate", "key", "user", "password"])
def test_half_of_a_pair_is_refused_without_the_secret(given: str) -> None:
    with pytest.raises(ConfigError, match=f"{given} needs .*, too") as refused:
        Config(feeds={"line": FEED}, metrics={given: PASSWORD})
    assert PASSWORD not in str(refused.value)


def test_a_password_of_the_wrong_type_is_not_shown() -> None:
    with pytest.raises(ConfigError, match=r"metrics\.password = \*\*\*") as refused:
        Config(feeds={"line": FEED}, metrics={"user": "prometheus", "password": 123_456})
    assert "123456" not in str(refused.value)
    assert PASSWORD not in repr(Config(feeds={"line": FEED}, metrics={"user": "p", "password": PASSWORD}))
