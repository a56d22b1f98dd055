"""A headless Chromium of this machine, driven by Playwright. Nothing is downloaded."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# It calls nobody: no updates, no reports, no QUIC. --no-sandbox, because containers run as root.
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """Return the path of a Chromium: BMQ_TEST_CHROMIUM, or the first one on the path; None: there is none."""
    return os.environ.get("BMQ_TEST_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running_chromium(path: str, folder: Path, width: int = 1280, height: int = 800) -> Iterator[BrowserContext]:
    """Yield a Chromium with an empty profile in a new folder."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder,
            executable_path=path,
            headless=True,
            args=OPTIONS,
            viewport={"width": width, "height": height},
            locale="en-GB",
            timezone_id="UTC",
        )
        yield context
        context.close()
