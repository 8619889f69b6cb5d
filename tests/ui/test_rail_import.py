"""Chats go out to files and come in again, by the menus of the list; a long import is watched and stopped."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.app.chats.test_import_forms import chatgpt, node
from tests.app.chats.test_importing import many
from tests.app.fakes import PATIENCE_S
from tests.ui.conftest import Profile, Served, chat_of, say
from tests.ui.test_rail_search import stored


def bring_in(page: Page, file: Path) -> None:
    page.click("#list-menu")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("menuitem", name="Import chats…").click()
    chooser.value.set_files(file)


def test_out_to_a_file_and_in_again(profile: Profile, served: Served, second: str, tmp_path: Path) -> None:
    page = profile.open()
    chat = stored(served, "Tea: a / story", "Which tea?", "<think>\nhm\n</think>\n\nGreen tea.")
    served.services.store.change(chat, model=second)
    for choice, name in (("Export as Markdown", "Tea a story.md"), ("Export as JSON", "Tea a story.json")):
        row = page.locator(f"[data-chat='{chat}']")
        row.hover()
        row.get_by_role("button", name="More").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=choice).click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
    text = (tmp_path / "Tea a story.md").read_text("utf-8")
    assert text.startswith("# Tea: a / story\n") and "## You\n\nWhich tea?\n" in text
    assert ", Second*\n" in text and chat not in text and second not in text  # names, not ids
    assert "<summary>Thoughts</summary>\n\nhm\n" in text and text.endswith("Green tea.\n")
    assert (
        json.loads((tmp_path / "Tea a story.json").read_text("utf-8"))["chats"][0]["title"]
        == "Tea: a / story"
    )
    found = [chatgpt(node("q", None, "user", "From afar"), title="A guest")]
    (tmp_path / "conversations.json").write_text(json.dumps(found))
    (tmp_path / "bad.json").write_text("[")
    for file, said in (
        ("conversations.json", "Chats that came in: 1. Messages in them: 1."),
        ("Tea a story.json", "Nothing new: every chat of this file, 1 in all, was here already."),
        ("bad.json", "can't be read as JSON"),
    ):
        bring_in(page, tmp_path / file)
        expect(page.locator("#toast")).to_contain_text(said)
    page.locator(".chat", has_text="A guest").locator(".open").click()
    expect(page.locator("#talk .user-row")).to_contain_text("From afar")
    profile.errors = [error for error in profile.errors if "422" not in error]  # of the bad file


def test_a_document_goes_out_with_its_chat_and_comes_back(page: Page, served: Served, tmp_path: Path) -> None:
    book = {"name": "book.txt", "mimeType": "text/plain", "buffer": b"Folded once.\nSewn twice."}
    page.locator("#desk-part input[type=file]").set_input_files([book])
    expect(page.locator("#desk-part .files li")).to_contain_text("2 lines")
    stream = say(page, served, "How is it bound?")
    stream.write("Sewn.")
    stream.finish()
    expect(page.locator("#talk .given li")).to_have_text("book.txt2 lines · read whole")
    chat = chat_of(page)
    with page.expect_download() as download:
        page.evaluate("chat => location.assign(`export/${chat}.json`)", chat)
    download.value.save_as(tmp_path / "out.json")
    served.services.chats.delete(chat)
    bring_in(page, tmp_path / "out.json")
    expect(page.locator("#toast")).to_contain_text("Chats that came in: 1. Messages in them: 2.")
    page.locator(".chat .open").first.click()
    expect(page.locator("#talk .given li")).to_have_text("book.txt2 lines · read whole")
    stream = say(page, served, "And folded?")
    assert "Folded once." in stream.request.messages[0].content
    stream.finish()


def test_an_import_says_how_far_it_is_and_is_stopped(
    profile: Profile, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes long: what it writes waits for the test."""
    page, file, go_on = profile.open(), served.services.store.file, threading.Event()
    (tmp_path / "conversations.json").write_text(json.dumps(many(3)))
    write = file.transact

    def transact(work: Callable[[Any], Any]) -> Any:
        if "_Intake" in work.__qualname__:
            go_on.wait(PATIENCE_S)
        return write(work)

    monkeypatch.setattr(file, "transact", transact)
    bring_in(page, tmp_path / "conversations.json")
    expect(page.locator("#toast")).to_contain_text("Sorting the chats of conversations.json in: 100 %")
    with page.expect_response(lambda answer: answer.request.method == "DELETE"):
        page.locator("#toast").get_by_role("button", name="Stop").click()
    expect(page.locator("#toast")).to_contain_text("Stopping: what has come in of conversations.json")
    go_on.set()
    expect(page.locator("#toast")).to_contain_text("The import was stopped. Nothing was imported.")
    expect(page.locator(".chat")).to_have_count(0)
    profile.errors = [error for error in profile.errors if "422" not in error]
