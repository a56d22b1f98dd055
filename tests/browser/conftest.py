"""One broker, one service and one browser for all tests of the page; each test has queries and streams of its own."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from bmq.broker.broker import Broker
from tests.browser.chromium import find_chromium, running_chromium
from tests.browser.stage import Stage

CHROMIUM = find_chromium()
TIMEOUT_SECONDS = 600
LIMIT_MS = 60_000  # a batch takes a second; on a busy machine some
expect.set_options(timeout=LIMIT_MS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time, and skip them on a machine without a Chromium."""
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))
            if CHROMIUM is None:
                item.add_marker(pytest.mark.skip("no Chromium is on the path (Debian: apt install chromium)"))


@pytest.fixture(scope="package")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    with Broker(folder / "kafka") as broker:
        stage = Stage(broker.bootstrap_servers, folder)
        stage.start()
        # So that the page knows how large the plane is.
        stage.read("vehicles", "corner-1", x=0, y=0)
        stage.read("vehicles", "corner-2", x=1000, y=1000)
        try:
            with stage.showing():
                yield stage
        finally:
            stage.stop()


@pytest.fixture(scope="package")
def complaints() -> list[str]:
    """What the browser complained of: broken rules of the policy, errors of scripts."""
    return []


@pytest.fixture(scope="package")
def page(stage: Stage, complaints: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    assert CHROMIUM is not None
    with running_chromium(CHROMIUM, tmp_path_factory.mktemp("profile")) as browser:
        page = browser.pages[0]
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.extend([line.text] if line.type == "error" else []))
        page.goto(stage.address)
        expect(page.locator(".pill")).to_have_text("live")
        yield page


@pytest.fixture(autouse=True)
def fresh(page: Any) -> None:
    """Each test begins with the map of the vehicles and the list of events."""
    page.set_viewport_size({"width": 1280, "height": 800})
    page.keyboard.press("Escape")
    cancel = page.get_by_role("button", name="Cancel")
    if cancel.count() and cancel.first.is_visible():
        cancel.first.click()
    page.locator("label[for=feed-vehicles]").click()
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("button", name="Whole").click()
    page.wait_for_timeout(700)  # the map moves there
