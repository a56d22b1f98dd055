"""Regions on the live page: drawn, dragged and put, with pointer and keyboard, on the map and on the chart."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.actions import SQUARE, click_map, definition, drag, event, open_query, put, show_prices
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser


def test_a_drawn_polygon_is_answered_and_a_vehicle_that_drives_in_and_out_is_seen(page: Any, stage: Stage) -> None:
    page.get_by_role("button", name="Draw a polygon").click()
    click_map(page, (0.4, 0.4), (0.6, 0.4), (0.6, 0.6), (0.4, 0.6), (0.4, 0.4))
    page.get_by_label("Query id").fill("drawn")
    polygon = json.loads(page.get_by_label("region", exact=True).input_value())["polygon"]
    page.get_by_role("button", name="Put query").click()
    expect(page.locator(".toast")).to_have_text(re.compile("drawn: accepted, version"))

    x, y = (sum(axis) / len(polygon) for axis in zip(*polygon, strict=True))
    stage.read("vehicles", "v7", x=x, y=y)
    page.get_by_role("tab", name="Events").click()
    expect(event(page, "v7 entered drawn")).to_have_count(1)
    detail = open_query(page, "drawn")
    expect(detail.locator("dd").first).to_have_text("1")
    expect(detail.locator(".members")).to_have_text("v7")
    expect(detail.locator(".replies li").first).to_have_text(re.compile("accepted version"))
    stage.read("vehicles", "v7", x=0, y=0)
    page.get_by_role("tab", name="Events").click()
    expect(event(page, "v7 left drawn")).to_have_count(1)

    assert len(polygon) == 4
    assert definition(page)["region"] == {"polygon": polygon}


def test_a_vertex_that_is_dragged_becomes_a_new_version(page: Any, stage: Stage) -> None:
    put(stage, "dragged", SQUARE)
    detail = open_query(page, "dragged")
    first = detail.locator(".state").inner_text()
    detail.get_by_role("button", name="Edit", exact=True).click()
    page.wait_for_timeout(900)  # the map goes to the region
    drag(page, page.get_by_role("button", name=re.compile("^vertex 3 of 4")), 72, -48)
    page.get_by_role("button", name="Put new version").click()

    expect(page.locator(".detail .state")).not_to_have_text(first)
    moved = definition(page)["region"]["polygon"]
    assert moved[2][0] > 610
    assert moved[2][1] > 605
    assert [moved[0], moved[1], moved[3]] == [[400, 400], [600, 400], [400, 600]]
    expect(page.locator(".versions summary")).to_have_count(1)


def test_the_middle_of_a_side_that_is_dragged_becomes_a_vertex(page: Any, stage: Stage) -> None:
    put(stage, "bent", SQUARE)
    open_query(page, "bent").get_by_role("button", name="Edit", exact=True).click()
    page.wait_for_timeout(900)  # the map goes to the region
    drag(page, page.get_by_role("button", name=re.compile("^middle behind vertex 2 of 4")), 90, 10)
    expect(page.get_by_role("button", name=re.compile("^vertex 3 of 5"))).to_be_focused()
    page.get_by_role("button", name="Put new version").click()

    expect(page.locator(".toast")).to_have_text(re.compile("bent: accepted"))
    bent = definition(page)["region"]["polygon"]
    assert len(bent) == 5
    assert bent[2][0] > 610
    assert [vertex for k, vertex in enumerate(bent) if k != 2] == SQUARE["polygon"]


def test_a_vertex_is_added_and_removed_with_the_keyboard_and_by_a_double_click(page: Any, stage: Stage) -> None:
    put(stage, "pruned", SQUARE)
    open_query(page, "pruned").get_by_role("button", name="Edit", exact=True).click()
    page.wait_for_timeout(900)
    region = page.get_by_label("region", exact=True)
    page.get_by_role("button", name=re.compile("^vertex 1 of 4")).focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("^middle behind vertex 1 of 4"))).to_be_focused()
    page.keyboard.press("Shift+ArrowDown")
    added = page.get_by_role("button", name=re.compile("^vertex 2 of 5"))
    expect(added).to_be_focused()
    below = json.loads(region.input_value())["polygon"]
    page.keyboard.press("Shift+ArrowDown")
    assert json.loads(region.input_value())["polygon"][1][1] < below[1][1] < 400
    page.keyboard.press("Delete")
    assert json.loads(region.input_value()) == SQUARE

    page.get_by_role("button", name=re.compile("^vertex 4 of 4")).dblclick()
    expect(page.get_by_role("button", name=re.compile("^vertex 3 of 3"))).to_be_visible()
    page.get_by_role("button", name=re.compile("^vertex 1 of 3")).dblclick()  # a polygon keeps three
    page.get_by_role("button", name="Put new version").click()
    expect(page.locator(".toast")).to_have_text(re.compile("pruned: accepted"))
    assert definition(page)["region"] == {"polygon": SQUARE["polygon"][:3]}


def test_a_query_is_drawn_moved_and_put_with_the_keyboard_alone(page: Any) -> None:
    page.get_by_role("button", name="Draw a polygon").focus()
    page.keyboard.press("Enter")
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press("Enter")
        page.keyboard.press(key)
        page.wait_for_timeout(600)  # the map moves
    finish = page.get_by_role("button", name="Finish")
    for _ in range(12):
        if finish.evaluate("button => button === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Query id")).to_be_focused()
    before = page.get_by_label("region", exact=True).input_value()
    page.get_by_role("button", name=re.compile("^vertex 1 of 3")).focus()
    page.keyboard.press("ArrowUp")
    after = page.get_by_label("region", exact=True).input_value()
    page.get_by_label("Query id").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("by-keyboard")
    page.keyboard.press("Enter")

    expect(page.locator(".toast")).to_have_text(re.compile("by-keyboard: accepted"))
    assert len(json.loads(before)["polygon"]) == 3
    assert json.loads(after)["polygon"][0] != json.loads(before)["polygon"][0]
    assert json.loads(after)["polygon"][1:] == json.loads(before)["polygon"][1:]


def test_prices_are_lines_and_a_dragged_border_is_a_new_version(page: Any, stage: Stage) -> None:
    put(stage, "forties", {"box": {"price": [40, 50]}}, feed="stocks")
    page.locator("label[for=feed-stocks]").click()
    for price in (39, 45, 51, 44):
        stage.read("stocks", "AAPL", price=price)
    expect(event(page, "AAPL left forties")).to_have_count(1)
    expect(page.locator(".chip")).to_have_text(re.compile("AAPL"))
    open_query(page, "forties").get_by_role("button", name="Edit", exact=True).click()
    handle = page.get_by_role("button", name=re.compile("^upper border"))
    expect(handle).to_be_visible()
    handle.focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowUp")
    page.get_by_role("button", name="Put new version").click()

    expect(page.locator(".toast")).to_have_text(re.compile("forties: accepted"))
    low, high = definition(page)["region"]["box"]["price"]
    assert low == 40
    assert high > 50.2


def test_a_band_is_drawn_by_a_drag_and_its_border_is_dragged(page: Any, stage: Stage) -> None:
    show_prices(page, stage)
    page.get_by_role("button", name="Draw a band").click()
    sheet = page.locator(".band-sheet").bounding_box()
    page.mouse.move(sheet["x"] + 300, sheet["y"] + 0.3 * sheet["height"])
    page.mouse.down()
    page.mouse.move(sheet["x"] + 340, sheet["y"] + 0.6 * sheet["height"], steps=5)
    expect(page.locator(".band-sketch")).to_be_visible()
    page.mouse.up()
    page.get_by_label("Query id").fill("band")
    region = page.get_by_label("region", exact=True)
    low, high = json.loads(region.input_value())["box"]["price"]
    drag(page, page.get_by_role("button", name=re.compile("^upper border")), 0, -40)
    page.get_by_role("button", name="Put query").click()

    expect(page.locator(".toast")).to_have_text(re.compile("band: accepted"))
    put_low, put_high = definition(page)["region"]["box"]["price"]
    assert 38 < low < high < 52
    assert put_low == low
    assert put_high > high
    stage.read("stocks", "MSFT", price=(low + high) / 2)
    page.get_by_role("tab", name="Events").click()
    expect(event(page, "MSFT entered band")).to_have_count(1)


def test_a_band_is_drawn_with_the_keyboard_alone(page: Any, stage: Stage) -> None:
    show_prices(page, stage)
    page.get_by_role("button", name="Draw a band").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".band-sheet")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".band-sheet")).to_be_hidden()
    page.get_by_role("button", name="Draw a band").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Query id")).to_be_focused()
    page.keyboard.type("typed-band")
    region = page.get_by_label("region", exact=True)
    low, high = json.loads(region.input_value())["box"]["price"]
    page.get_by_role("button", name=re.compile("^lower border")).focus()
    page.keyboard.press("Shift+ArrowDown")
    page.get_by_label("Query id").focus()
    page.keyboard.press("Enter")

    expect(page.locator(".toast")).to_have_text(re.compile("typed-band: accepted"))
    put_low, put_high = definition(page)["region"]["box"]["price"]
    assert put_low < low < high == put_high


def test_the_browser_had_nothing_to_complain_of(complaints: list[str]) -> None:
    # An answer that is an error is a line of the console, too; the page shows it at its field.
    assert [one for one in complaints if "status of 422" not in one] == []
