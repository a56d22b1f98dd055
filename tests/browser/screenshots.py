"""Makes the pictures of the live page that the documents show: `make screenshots`.

Runs the demo with everything in it, and drives a Chromium over its page.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bmq.broker.ports import free_ports
from tests.brokers import wait_until
from tests.browser.chromium import find_chromium, running_chromium

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs"
START_LIMIT_SECONDS = 500.0
LIMIT_MS = 60_000
EUROPE = {"polygon": [[-10, 36], [4, 42], [26, 35], [42, 46], [32, 60], [14, 66], [-11, 58]]}


@contextmanager
def running_demo(port: int, log: Path) -> Iterator[str]:
    """Yield the address of the demo's page."""
    command = [sys.executable, "-m", "bmq.cli", "demo", "all", "--rate", "1500", "--port", str(port), "--no-open"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)

    def is_served() -> bool:
        assert process.poll() is None, log.read_text()
        return "The page is at" in log.read_text()

    try:
        wait_until(is_served, "the demo's page", START_LIMIT_SECONDS)
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait(90)


def main() -> None:
    """Write docs/view.png and docs/view-*.png."""
    chromium = find_chromium()
    if chromium is None:
        sys.exit("screenshots: no Chromium is on the path (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (port,) = free_ports(1)
        with (
            running_demo(port, folder / "demo.log") as address,
            running_chromium(chromium, folder / "profile", 1360, 800) as browser,
        ):
            page = browser.pages[0]
            page.goto(address)
            page.wait_for_selector(".pill.running", timeout=LIMIT_MS)
            page.wait_for_selector("li.event", timeout=LIMIT_MS)
            page.wait_for_timeout(12_000)  # streams cross borders meanwhile
            page.screenshot(path=PICTURES / "view.png")
            show_query(page)
            page.screenshot(path=PICTURES / "view-query.png")
            page.locator("label[for=feed-stocks]").click()
            page.wait_for_timeout(45_000)  # prices need some time to be lines
            page.get_by_role("tab", name="Health").click()
            page.wait_for_timeout(2_000)
            page.screenshot(path=PICTURES / "view-chart.png")


def show_query(page: Any) -> None:
    """Put a polygon over Europe, and show who is inside."""
    page.get_by_role("tab", name="Queries").click()
    page.get_by_role("button", name="New query").click()
    page.get_by_label("Query id").fill("europe")
    page.get_by_label("region", exact=True).fill(json.dumps(EUROPE))
    page.get_by_role("button", name="Put query").click()
    page.wait_for_selector(".detail .members", timeout=LIMIT_MS)
    page.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_timeout(15_000)  # planes fly in and out, and the message of the reply goes


if __name__ == "__main__":
    main()
