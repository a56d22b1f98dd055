"""Measures the live page under load: `python -m tests.browser.load [--minutes 10]`.

10,000 vehicles with 5,000 readings a second and 1,000 regions, in a headless Chromium without a graphics card. A second
browser connects and reads nothing. Every ten seconds the page is clicked, zoomed and moved, and prints a line:

    how long the slowest input took until the next frame (the browser's own event timing)
    the size of the page's heap after a collection of garbage
    the memory of the process that serves the page; it also makes the readings
    the line of figures that the page shows

The claim: every input is answered within 100 ms, and neither memory grows by more than a tenth from the first third of
the time to the last. The exit code is 1 if that does not hold.
"""

import argparse
import http.client
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bmq.broker.broker import Broker
from bmq.client import Client
from bmq.demo.demo_queries import vehicle_queries
from bmq.demo.feeder import Feeder
from bmq.demo.generated_streams import Vehicles
from tests.browser.chromium import find_chromium, running_chromium
from tests.browser.stage import Stage

N_STREAMS, RATE, N_REGIONS = 10_000, 5_000.0, 1_000
ROUND_SECONDS = 10
LIMIT_MS = 120_000
ANSWER_LIMIT_MS = 100.0
MOST_GROWTH = 1.1

OBSERVE = """() => { window.slowest = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.slowest = Math.max(window.slowest, entry.duration);
}).observe({type: "event", durationThreshold: 16}); }"""


def regions() -> dict[str, dict[str, Any]]:
    """Return 1,000 boxes: the demo's garages and shops of two seeds."""
    found = vehicle_queries(0) | {f"more-{name}": query for name, query in vehicle_queries(7).items()}
    return dict(list(found.items())[:N_REGIONS])


def use(page: Any, n: int) -> float:
    """Click, zoom and move; return the slowest input in milliseconds."""
    page.evaluate("window.slowest = 0")
    box = page.locator(".stage").bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for name in ("Queries", "Health", "Events"):
        page.get_by_role("tab", name=name).click()
        page.wait_for_timeout(300)
    page.mouse.move(*middle)
    page.mouse.wheel(0, -240 if n % 2 else 240)
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.move(middle[0] + 60, middle[1] + 40, steps=6)
    page.mouse.up()
    page.wait_for_timeout(500)
    return float(page.evaluate("window.slowest"))


def heap_bytes(session: Any) -> float:
    """Return the size of the heap after a collection of garbage."""
    session.send("HeapProfiler.collectGarbage")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "JSHeapUsedSize"))


def resident_bytes() -> float:
    """Return the resident memory of this process, which serves the page."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return 1024.0 * int(line.split()[1])


def main() -> None:
    """Run, print a line every ten seconds, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    chromium = find_chromium()
    if chromium is None:
        sys.exit("load: no Chromium is on the path (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as name, Broker(Path(name) / "kafka") as broker:
        stage = Stage(broker.bootstrap_servers, Path(name))
        stage.start()
        with Client(stage.servers) as client:
            client.put_many(regions(), 300)
        feeder = Feeder({"bootstrap.servers": stage.servers}, Vehicles(N_STREAMS), RATE)
        feeder.start()
        try:
            with stage.showing() as address, running_chromium(chromium, Path(name) / "profile") as browser:
                measure(browser, address, minutes)
        finally:
            feeder.stop()
            stage.stop()


def measure(browser: Any, address: str, minutes: float) -> None:
    """Print a line for each round."""
    sleeper = http.client.HTTPConnection(address.split("/")[2])
    sleeper.request("GET", "/api/updates")  # and reads nothing
    page = browser.pages[0]
    page.goto(address)
    page.locator("label[for=feed-vehicles]").click(timeout=LIMIT_MS)
    page.wait_for_selector("li.event", timeout=LIMIT_MS)
    page.wait_for_timeout(20_000)
    session = browser.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate(OBSERVE)
    inputs: list[float] = []
    heaps: list[float] = []
    servers: list[float] = []
    started = time.monotonic()
    print("seconds,slowest_input_ms,heap_mb,server_mb,figures", flush=True)
    while time.monotonic() - started < minutes * 60:
        begun = time.monotonic()
        inputs.append(use(page, len(inputs)))
        heaps.append(heap_bytes(session) / 1e6)
        servers.append(resident_bytes() / 1e6)
        shown = page.locator(".numbers").inner_text()
        print(f"{begun - started:.0f},{inputs[-1]:.0f},{heaps[-1]:.1f},{servers[-1]:.0f},{shown}", flush=True)
        page.wait_for_timeout(max(0, 1000 * (ROUND_SECONDS - (time.monotonic() - begun))))
    sleeper.close()
    slow = sum(one > ANSWER_LIMIT_MS for one in inputs)
    print(f"slowest input of a round: median {statistics.median(inputs):.0f} ms, worst {max(inputs):.0f} ms")
    print(f"rounds with an input above {ANSWER_LIMIT_MS:.0f} ms: {slow} of {len(inputs)}")
    grown = [growth(name, values) for name, values in (("heap", heaps), ("server", servers))]
    sys.exit(1 if slow or max(grown) > MOST_GROWTH else 0)


def growth(name: str, megabytes: list[float]) -> float:
    """Print the memory in the first and in the last third of the time; return the last by the first."""
    third = max(1, len(megabytes) // 3)
    first, last = statistics.median(megabytes[:third]), statistics.median(megabytes[-third:])
    print(f"{name}: {first:.1f} MB in the first third, {last:.1f} MB in the last")
    return last / first


if __name__ == "__main__":
    main()
