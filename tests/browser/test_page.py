"""The live page in a Chromium, with Kafka and the service: what a person does, and what he sees then.

One broker, one service and one browser for all tests; each test has queries and streams of its own.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bmq.broker.broker import Broker
from bmq.client import Client
from tests.browser.chromium import find_chromium, running_chromium
from tests.browser.stage import Stage

playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
expect = playwright.expect

CHROMIUM = find_chromium()
pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(600),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is on the path (Debian: apt install chromium)"),
]

LIMIT_MS = 60_000  # a batch takes a second; on a busy machine some
expect.set_options(timeout=LIMIT_MS)
SQUARE = {"polygon": [[400, 400], [600, 400], [600, 600], [400, 600]]}


@pytest.fixture(scope="module")
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


@pytest.fixture(scope="module")
def complaints() -> list[str]:
    """What the browser complained of: broken rules of the policy, errors of scripts."""
    return []


@pytest.fixture(scope="module")
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
    handle = page.get_by_role("button", name=re.compile("^vertex 3 of 4"))
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 8, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] - 40, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="Put new version").click()

    expect(page.locator(".detail .state")).not_to_have_text(first)
    moved = definition(page)["region"]["polygon"]
    assert moved[2][0] > 610
    assert moved[2][1] > 605
    assert [moved[0], moved[1], moved[3]] == [[400, 400], [600, 400], [400, 600]]
    expect(page.locator(".versions summary")).to_have_count(1)


def test_the_services_error_is_at_the_field_that_it_names(page: Any, stage: Stage) -> None:
    page.get_by_role("tab", name="Queries").click()
    page.get_by_role("button", name="New query").click()
    page.get_by_label("Query id").fill("wrong")
    region = page.get_by_label("region", exact=True)
    region.fill('{"polygon": [[0, 0], [1, 1], [2, 2]]}')
    page.get_by_role("button", name="Put query").click()
    expect(page.locator("#error-region")).to_have_text(re.compile("^bad_region: Field 'region"))
    expect(region).to_be_focused()
    expect(region).to_have_attribute("aria-invalid", "true")

    region.fill('{"polygon": [[0, 0], [1, 1], ')
    page.get_by_role("button", name="Put query").click()
    expect(page.locator("#error-region")).to_have_text(re.compile("^not_json: "))

    region.fill(json.dumps(SQUARE))
    page.get_by_label("stay for").fill("3")
    page.get_by_role("button", name="Put query").click()
    expect(page.locator("#error-stay_for")).to_have_text(re.compile("^bad_duration: Field 'stay_for'"))
    expect(page.locator("#error-region")).to_be_hidden()
    with Client(stage.servers) as client:
        assert "wrong" not in client.queries()


def test_a_query_is_paused_resumed_and_deleted(page: Any, stage: Stage) -> None:
    put(stage, "brief", SQUARE, tags={"shop": "17"})
    stage.read("vehicles", "v8", x=500, y=500)
    expect(event(page, "v8 entered brief")).to_have_count(1)
    detail = open_query(page, "brief")

    detail.get_by_role("button", name="Pause").click()
    expect(detail.locator(".state")).to_have_text(re.compile("^paused"))
    assert definition(page)["enabled"] is False
    detail.get_by_role("button", name="Resume").click()
    expect(detail.locator(".state")).to_have_text(re.compile("^accepted"))
    assert "enabled" not in definition(page)
    page.once("dialog", lambda dialog: dialog.accept())
    detail.get_by_role("button", name="Delete").click()

    expect(page.locator(".toast")).to_have_text("brief: deleted")
    expect(page.get_by_role("button", name="brief", exact=True)).to_have_count(0)
    page.get_by_role("tab", name="Events").click()
    page.get_by_role("searchbox", name="Only events whose query contains").fill("brief")
    expect(event(page, "v8 left brief")).to_have_count(2)
    expect(event(page, "query deleted")).to_have_count(1)
    page.get_by_role("searchbox", name="Only events whose query contains").fill("")


def test_ids_tags_and_dead_letters_are_text_and_never_markup(page: Any, stage: Stage) -> None:
    evil = "<img src=x onerror=\"document.title='hurt'\">"
    put(stage, evil, SQUARE, tags={evil[:40]: evil})
    stage.read("vehicles", evil, x=500, y=500)
    stage.publish("vehicles", evil)

    row = page.locator("li.event", has_text=evil)
    expect(row.first).to_be_visible()
    page.get_by_role("tab", name="Health").click()
    expect(page.locator(".dead li", has_text="not_json").first).to_contain_text(evil)
    open_query(page, evil)
    assert definition(page)["tags"] == {evil[:40]: evil}
    assert page.locator("#app img").count() == 0
    assert page.title() == "BMQ"


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


UNNAMED = """() => [...document.querySelectorAll("button, input, select, textarea, canvas, [tabindex]")]
  .filter((one) => one.checkVisibility() && !one.closest("[aria-hidden=true]"))
  .filter((one) => !(one.ariaLabel || one.title || [...(one.labels ?? [])].map((l) => l.textContent).join("")
    || (one.matches("button, h2, p") && one.textContent)).trim())
  .map((one) => one.outerHTML.slice(0, 200))"""


def test_everything_that_can_be_used_has_a_name(page: Any, stage: Stage) -> None:
    put(stage, "named", SQUARE)
    for tab in ("Events", "Health", "Queries"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate(UNNAMED) == []
    open_query(page, "named")
    assert page.evaluate(UNNAMED) == []
    page.locator(".detail").get_by_role("button", name="Edit", exact=True).click()
    page.locator("details summary", has_text="More options").click()
    assert page.evaluate(UNNAMED) == []
    page.get_by_role("tab", name="Queries").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Health")).to_have_attribute("aria-selected", "true")
    for landmark in ("main", "complementary", "banner"):
        assert page.get_by_role(landmark).count() == 1


def test_on_a_narrow_screen_nothing_is_cut_off(page: Any, stage: Stage) -> None:
    put(stage, "narrow", SQUARE)
    page.set_viewport_size({"width": 390, "height": 800})
    for tab in ("Events", "Queries", "Health"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    open_query(page, "narrow").get_by_role("button", name="Edit", exact=True).click()

    stage_box, panel_box = page.locator(".stage").bounding_box(), page.locator(".panel").bounding_box()
    assert stage_box["width"] == panel_box["width"] == 390
    assert stage_box["height"] >= 200
    assert panel_box["y"] + panel_box["height"] <= 800
    expect(page.get_by_role("button", name="Put new version")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


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


def test_a_page_without_the_right_to_change_has_no_button_for_it(page: Any, stage: Stage) -> None:
    put(stage, "only-read", SQUARE)
    with stage.showing(read_only=True) as address:
        other = page.context.new_page()
        other.goto(address)
        open_query(other, "only-read")
        assert other.get_by_role("button", name=re.compile("Edit|Pause|Delete|New query|Draw")).count() == 0
        other.close()


def test_after_the_service_was_killed_the_page_goes_on(page: Any, stage: Stage) -> None:
    put(stage, "lasting", SQUARE)
    stage.kill()
    expect(page.locator(".pill")).to_have_text("service away")
    stage.read("vehicles", "v9", x=500, y=500)

    stage.start()

    expect(page.locator(".pill")).to_have_text("live")
    expect(event(page, "v9 entered lasting")).to_have_count(1)


def test_the_browser_had_nothing_to_complain_of(complaints: list[str]) -> None:
    # An answer that is an error is a line of the console, too; the page shows it at its field.
    assert [one for one in complaints if "status of 422" not in one] == []
