"""The model's name above a chat is a button: the models that are here, picked by mouse or keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from engine.llm import NO_TEMPLATE
from installer.starter import STARTER_ID
from tests.ui.conftest import NewProfile, Served, chat_of, say


def test_another_model_for_new_chats_and_for_this_one(page: Page, served: Served, second: str) -> None:
    name = page.locator("#pick-model")
    expect(name).to_have_text("fake")
    name.focus()
    page.keyboard.press("Enter")
    menu = page.get_by_role("menu")
    expect(menu.get_by_role("menuitemradio", name="fake", exact=True)).to_be_checked()
    expect(menu.get_by_role("menuitemradio", name="fake", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(menu.get_by_role("menuitemradio", name="Second")).to_be_focused()
    page.keyboard.press("Enter")
    expect(name).to_have_text("Second")
    expect(name).to_be_focused()
    assert page.evaluate("octavo.state.chat") == ""  # a blank page makes no chat for it

    say(page, served, "Hello").finish()
    name.click()
    expect(menu.get_by_role("menuitemradio", name="Second")).to_be_checked()
    page.keyboard.press("Escape")
    expect(menu).to_have_count(0)
    served.services.presets.change(chat_of(page), model="")
    name.click()
    page.get_by_role("menuitem", name="More models").click()
    expect(page.get_by_role("heading", name="Models", level=1)).to_be_visible()


def test_while_another_answers_it_is_said_and_can_be_taken_back(
    page: Page, served: Served, second: str
) -> None:
    library, note = served.services.library, page.locator(".desk .notice")
    library.load("second")
    expect(page.locator("#pick-model")).to_have_text("Second")
    running = say(page, served, "Hello")
    library.load(served.services.settings.model)
    expect(note).to_have_text("When the answers that run have ended, fake is loaded.")
    page.locator("#pick-model").click()
    page.get_by_role("menuitemradio", name="Second").click()
    expect(note).to_be_hidden()
    running.finish()
    expect(page.locator("#pick-model")).to_have_text("Second")


def test_it_is_kept_with_a_chat(page: Page, served: Served, second: str) -> None:
    say(page, served, "Hello").finish()
    page.locator("#pick-model").click()
    page.get_by_role("menuitemradio", name="Second").click()
    expect(page.locator("#pick-model")).to_have_text("Second")  # as people call it
    assert served.services.presets.of(chat_of(page)).model == "second"


def test_on_a_phone(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, viewport={"width": 390, "height": 844}).open()
    say(page, served, "A title that is far longer than a phone is wide, as titles are").finish()
    expect(page.locator("#pick-model .name")).to_be_visible()
    page.locator("#pick-model").click()
    expect(page.get_by_role("menuitem", name="More models")).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_the_starter_is_told_from_other_models(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.memory.rota import RuntimeStatus
    from ui.chat_page import ChatPage

    page, library = ChatPage(served.services, lambda: None), served.services.library
    assert library.starter == STARTER_ID  # the one that the installer brings
    for model, is_it in ((library.starter, True), (f"{library.starter}@gguf-q4_1", True), ("fake", False)):
        status = RuntimeStatus(model, "ready", "", 1.0)
        monkeypatch.setattr(served.services.runtime, "status", lambda status=status: status)
        assert page.frame({})["status"]["starter"] is is_it


def test_a_model_that_was_not_taught_to_chat_is_said_to_be(page: Page) -> None:
    line = page.locator("#caution")
    expect(line).to_be_hidden()
    page.evaluate(
        "caution => octavo.set({ status: { ...octavo.state.status, state: 'ready', caution } })", NO_TEMPLATE
    )
    expect(line).to_have_text(NO_TEMPLATE)
    expect(page.locator("#pick-model")).to_have_attribute("title", re.compile(re.escape(NO_TEMPLATE)))


def test_the_starter_is_said_to_be_tiny(page: Page) -> None:
    tiny = page.locator("#tiny")
    expect(tiny).to_be_hidden()  # the stand-in is not the starter
    page.evaluate("octavo.set({ status: { ...octavo.state.status, starter: true } })")
    expect(tiny).to_contain_text("tiny and often wrong")
    tiny.get_by_role("button", name="Get a larger one").click()
    expect(page.get_by_role("heading", name="Models", level=1)).to_be_visible()
