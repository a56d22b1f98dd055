"""What a person does on the page, and where he looks then."""

import json
import re
from typing import Any

from playwright.sync_api import expect

from bmq.client import Client
from tests.browser.stage import Stage

SQUARE = {"polygon": [[400, 400], [600, 400], [600, 600], [400, 600]]}


def put(stage: Stage, query_id: str, region: object, feed: str = "vehicles", **more: object) -> None:
    with Client(stage.servers) as client:
        reply = client.put(query_id, {"kind": "border", "feed": feed, "region": region, **more})
    assert reply.status == "accepted"


def open_query(page: Any, query_id: str) -> Any:
    page.get_by_role("tab", name="Queries").click()
    page.get_by_role("button", name=query_id, exact=True).click()
    detail = page.locator(".detail")
    expect(detail.get_by_role("heading", level=2)).to_have_text(query_id)
    return detail


def definition(page: Any) -> Any:
    return json.loads(page.locator(".detail .definition").first.inner_text())


def event(page: Any, text: str) -> Any:
    return page.locator("li.event", has_text=re.compile(text))


def click_map(page: Any, *places: tuple[float, float]) -> None:
    """Click places of the map, in shares of its width and height."""
    box = page.locator(".stage").bounding_box()
    for across, down in places:
        page.mouse.click(box["x"] + across * box["width"], box["y"] + down * box["height"], delay=30)
        page.wait_for_timeout(350)  # two clicks at once would be a double click


def drag(page: Any, handle: Any, across: float, down: float) -> None:
    """Drag a handle by so many pixels."""
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=4)
    page.mouse.up()


def show_prices(page: Any, stage: Stage) -> None:
    """Show the chart with the prices of a stock between 39 and 51."""
    page.locator("label[for=feed-stocks]").click()
    for price in (39, 45, 51, 44):
        stage.read("stocks", "AAPL", price=price)
    expect(page.locator(".chip", has_text="AAPL")).to_be_visible()
    page.wait_for_timeout(1500)  # the axis follows the prices
