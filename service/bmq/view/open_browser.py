"""Opens the page in a browser of this machine, if it has a screen."""

import os
import sys
import webbrowser


def open_browser(address: str) -> None:
    """Open an address; do nothing without a screen, where a text browser would take over the terminal."""
    has_screen = sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if has_screen:
        webbrowser.open(address)
