"""A chat's own settings: changed in the sheet, kept with the chat, used by its answers; presets."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.ui.conftest import NewProfile, Profile, Served, chat_of, say


def open_sheet(page: Page) -> None:
    page.get_by_role("button", name="Settings of this chat").click()
    expect(page.get_by_role("dialog", name="Settings of this chat")).to_be_visible()


def test_settings_of_a_chat_to_come_and_a_preset_for_another(profile: Profile, served: Served) -> None:
    page = profile.open()
    page.fill("#draft", "What is ice?")
    open_sheet(page)
    for label, value in (("System prompt", "Answer in rhymes."), ("Temperature", "0.25"), ("Seed", "7")):
        page.get_by_label(label).fill(value)
        page.keyboard.press("Tab")
    page.get_by_label("Temperature").fill("99")
    page.keyboard.press("Tab")
    expect(page.locator("#chat-sheet .oops")).to_have_text(
        "temperature is 99; it must lie between 0.0 and 5.0."
    )
    page.get_by_label("Temperature").fill("0.5")
    page.keyboard.press("Tab")
    expect(page.locator("#chat-sheet .oops")).to_be_hidden()
    page.get_by_role("textbox", name="Name of the preset").fill("Poet")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Preset", exact=True)).to_contain_text("Poet")
    page.keyboard.press("Escape")
    expect(page.locator("#draft")).to_have_value("What is ice?")  # it went along into the new chat
    page.press("#draft", "Enter")
    request = served.model.next_stream().request
    assert request.messages[0].content == "Answer in rhymes."
    assert (request.sampling.temperature, request.sampling.seed) == (0.5, 7)
    served.model.streams[-1].finish()
    first = chat_of(page)

    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    open_sheet(page)
    page.get_by_label("Preset", exact=True).select_option(label="Poet")
    expect(page.get_by_label("Temperature")).to_have_value("0.5")
    page.keyboard.press("Escape")
    stream = say(page, served, "And fire?")
    assert stream.request.messages[0].content == "Answer in rhymes." and chat_of(page) != first
    stream.finish()
    open_sheet(page)
    page.get_by_role("button", name="All as usual").click()
    expect(page.get_by_label("Temperature")).to_have_value("")
    page.get_by_label("Preset", exact=True).select_option(label="Poet")
    page.get_by_role("button", name="Delete the preset “Poet”").click()
    expect(page.get_by_label("Preset", exact=True)).not_to_contain_text("Poet")
    page.keyboard.press("Escape")
    assert served.services.presets.of(first).preset == "Poet"  # chats keep what they took


def test_narrow_and_at_twice_the_size(served: Served, new_profile: NewProfile) -> None:
    for options in ({"width": 390, "height": 844}, {"width": 640, "height": 430}):  # the second: 200%
        page = new_profile(served, viewport=options).open()
        open_sheet(page)
        page.get_by_role("button", name="All as usual").scroll_into_view_if_needed()
        expect(page.get_by_role("button", name="All as usual")).to_be_in_viewport(ratio=1)
        wide = page.evaluate("document.querySelector('#chat-sheet').scrollWidth - innerWidth")
        assert wide <= 0
        page.keyboard.press("Escape")
        expect(page.locator("#chat-sheet")).to_have_count(0)
