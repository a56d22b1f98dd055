"""The live page in a Chromium, with Kafka and the service: queries, events, errors, and what comes from outside."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import expect

from bmq.client import Client
from tests.browser.actions import SQUARE, definition, event, open_query, put
from tests.browser.stage import Stage

pytestmark = pytest.mark.browser


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


def test_a_page_without_the_right_to_change_has_no_button_for_it(page: Any, stage: Stage) -> None:
    put(stage, "only-read", SQUARE)
    with stage.showing(read_only=True) as address:
        other = page.context.new_page()
        other.goto(address)
        open_query(other, "only-read")
        assert other.get_by_role("button", name=re.compile("Edit|Pause|Delete|New query|Draw")).count() == 0
        other.locator("label[for=feed-stocks]").click()
        expect(other.get_by_role("button", name="Add", exact=True)).to_be_visible()
        assert other.get_by_role("button", name=re.compile("Draw")).count() == 0
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
