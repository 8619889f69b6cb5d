"""Answers side by side: from the first message on or to a question of before, by chance, by temperature, by
model."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.ui.conftest import NewProfile, Served, answer, say, usable
from tests.ui.test_talk_versions import pick, talk


def test_answers_side_by_side(page: Page, served: Served) -> None:
    talk(page, served, ("Dice?", "one"))
    pick(page, ".bot-row", "compare")
    dialog = page.get_by_role("dialog", name="Compare answers")
    expect(dialog.get_by_role("radio", name="chance")).to_be_checked()
    dialog.get_by_role("radio", name="3").check(force=True)
    dialog.get_by_role("button", name="Answer").click()
    streams = [served.model.next_stream() for _ in range(3)]
    beside = page.locator("#talk .beside")
    for place, stream in enumerate(streams):
        stream.write(f"answer {place}")
        expect(beside.nth(place).locator(".prose")).to_have_text(f"answer {place}")
    tops = [box["y"] for each in beside.all() if (box := each.bounding_box())]
    assert len(tops) == 3 and len(set(tops)) == 1  # columns
    page.reload()
    for place, stream in enumerate(streams):
        stream.write(", whole")
        stream.finish()
        expect(beside.nth(place).locator(".prose")).to_have_text(f"answer {place}, whole")
    page.get_by_role("button", name="Go on with this one").nth(1).click()
    expect(beside).to_have_count(0)
    expect(answer(page)).to_have_text("answer 1, whole")
    expect(page.get_by_role("group", name="Versions")).to_have_text("3 / 4")


def test_answers_by_temperature_stand_below_each_other_on_a_phone(
    served: Served, new_profile: NewProfile
) -> None:
    page = new_profile(served, viewport={"width": 390, "height": 760}, locale="zh-CN").open()
    stream = say(page, served, "骰子？")
    stream.write("一")
    stream.finish()
    expect(page.locator("#talk .figures")).to_be_visible()
    expect(page.locator("#send")).to_be_visible()
    page.locator("#talk .bot-row [data-tool=more]").click()
    page.get_by_role("menuitem", name="比较多个回答").click()
    page.get_by_role("radio", name="温度").check(force=True)
    page.get_by_role("button", name="开始回答").click()
    for _ in range(2):
        stream = served.model.next_stream()
        stream.write("二")
        stream.finish()
    beside = page.locator("#talk .beside")
    expect(beside.nth(1).locator(".figures")).to_contain_text("温度 0.8")
    first, second = (each.bounding_box() for each in beside.all())
    assert first and second and first["x"] == second["x"] and second["y"] > first["y"]
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def asked(page: Page) -> Locator:
    """The dialog, opened from where one writes."""
    page.locator("#compare").click()
    return page.get_by_role("dialog", name="Compare answers")


def test_from_the_first_message_on(page: Page, served: Served) -> None:
    expect(page.locator("#compare")).to_be_hidden()  # there is nothing to answer
    page.fill("#draft", "Dice?")
    dialog = asked(page)
    expect(dialog.get_by_role("radio", name="model")).to_have_count(0)  # there is only one
    dialog.get_by_role("radio", name="temperature").check(force=True)
    dialog.get_by_role("button", name="Answer").click()
    streams = [served.model.next_stream() for _ in range(2)]
    assert [stream.request.messages[-1].content for stream in streams] == ["Dice?"] * 2
    assert {stream.request.sampling.temperature for stream in streams} == {0.3, 0.8}
    expect(page.locator("#draft")).to_have_value("")
    page.fill("#draft", "and then")
    expect(page.locator("#compare")).to_be_hidden()  # while they grow
    for stream in streams:
        stream.write("six")
        stream.finish()
    expect(page.locator("#talk .beside .figures")).to_contain_text(["temperature 0.3", "temperature 0.8"])
    page.reload()
    usable(page)
    expect(page.locator("#talk .beside")).to_have_count(2)


def test_by_two_models_in_turn(page: Page, served: Served, second: str) -> None:
    page.fill("#draft", "Who are you?")
    dialog = asked(page)
    dialog.get_by_role("radio", name="model").check(force=True)
    expect(dialog.get_by_role("radio", name="3")).to_be_hidden()
    fake, other = (dialog.get_by_role("checkbox", name=name) for name in ("fake", "Second"))
    expect(fake).to_be_checked()
    fake.click(force=True)
    expect(fake).to_be_checked()  # one alone is no comparison
    expect(other).to_be_checked()
    dialog.get_by_role("button", name="Answer").click()
    for word in ("first", "second"):
        stream = served.model.next_stream()
        stream.write(word)
        stream.finish()
    expect(page.locator("#talk .beside .prose")).to_have_text(["first", "second"])
    expect(page.locator("#talk .beside .figures")).to_contain_text(["fake", "Second"])
    page.get_by_role("button", name="Go on with this one").nth(1).click()
    expect(answer(page)).to_have_text("second")
    say(page, served, "And now?").finish()
    expect(page.locator("#pick-model")).to_have_text("fake")  # the chat's own model answers again
    expect(page.locator("#talk .figures").first).to_contain_text("Second")
