"""Pictures of every page in both themes, both languages and two widths, with chats as people have them.

    python -m tests.ui.screenshots FOLDER [PAGE ...]

The model is a stand-in that answers from below, so no model is needed; a page is a row of PAGES.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from installer.browser import find_browser
from tests.ui.conftest import Served, serving, usable
from tests.ui.talks import fill


@dataclass(frozen=True, slots=True)
class Shot:
    """A page by its address, what must be seen on it, and what is done before."""

    query: str
    seen: str
    prepare: Callable[[Page], None] = lambda page: None
    whole: bool = True  # as high as the page is, not as the screen


def open_list(page: Page) -> None:
    """The list of chats, which narrow screens hide."""
    if page.viewport_size and page.viewport_size["width"] < 768:
        page.locator("#toggle-rail").click()
        page.wait_for_timeout(400)  # it slides in


def press(*keys: str) -> Callable[[Page], None]:
    """Shortcuts, typed where nothing has the cursor."""

    def do(page: Page) -> None:
        page.evaluate("document.activeElement.blur()")
        for key in keys:
            page.keyboard.press(key)

    return do


def click(*places: str) -> Callable[[Page], None]:
    """One after the other."""

    def do(page: Page) -> None:
        for place in places:
            page.locator(place).first.click()

    return do


def in_list(place: str) -> Callable[[Page], None]:
    """In the list of chats."""

    def do(page: Page) -> None:
        open_list(page)
        page.locator(place).click()

    return do


def from_menu(item: str) -> Callable[[Page], None]:
    """What an answer's menu offers."""
    return click("#talk .bot-row [data-tool=more]", f".menu [data-item={item}]")


def search(page: Page) -> None:
    """All chats, for a word."""
    page.keyboard.press("Control+k")
    page.locator("#search-box").fill("octavo")


def attach(page: Page) -> None:
    """Two files in the writing place, and words beside them."""
    notes = {"name": "notes on binding.md", "mimeType": "text/plain", "buffer": b"Folded once.\nSewn twice."}
    page.locator("input[type=file]").set_input_files([notes, {**notes, "name": "list.csv"}])
    expect(page.locator(".files .spin")).to_have_count(0)
    page.fill("#draft", "How often is it sewn?")
    expect(page.locator("#cost")).to_be_visible()


def refuse(page: Page) -> None:
    """A file that can't be read."""
    archive = {"name": "photos.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04" + bytes(400)}
    page.locator("input[type=file]").set_input_files([archive])


PAGES = {
    "blank": Shot("", "#draft", whole=False),
    "list": Shot("", ".chat", open_list, whole=False),
    "chat": Shot("?chat={chat}", "#talk .bot-row", whole=False),
    "formula": Shot("?chat={formula}", "#talk .bot-row", whole=False),
    "thinking": Shot("?chat={thinking}", ".thoughts .text", click(".thoughts summary"), whole=False),
    "compared": Shot("?chat={compared}", "#talk .beside", whole=False),
    "versions": Shot("?chat={versions}", ".versions", whole=False),
    "growing": Shot("?chat={growing}", "#line .waits", whole=False),
    "failed": Shot("?chat={failed}", ".oops", whole=False),
    "attached": Shot("", ".files li", attach, whole=False),
    "refused": Shot("", ".notice.error", refuse, whole=False),
    "menu": Shot("?chat={chat}", ".menu", click("#talk .bot-row [data-tool=more]"), whole=False),
    "rewriting": Shot("?chat={chat}", ".rewrite", from_menu("pen"), whole=False),
    "deleting": Shot("?chat={chat}", "dialog.ask", from_menu("bin"), whole=False),
    "comparing": Shot("?chat={chat}", "dialog.ask", from_menu("compare"), whole=False),
    "picking": Shot("?chat={chat}", ".menu", click("#pick-model"), whole=False),
    "search": Shot("?chat={chat}", "#hits [role=option]", search, whole=False),
    "help": Shot("?chat={chat}", "#help", press("?"), whole=False),
    "context": Shot("?chat={chat}", "#context", click("#about-context"), whole=False),
    "sheet": Shot("?chat={chat}", "#chat-sheet", click("#chat-settings"), whole=False),
    "archive": Shot("?chat={chat}", ".place-head", in_list("[data-place=archive] .open"), whole=False),
    "listmenu": Shot("?chat={chat}", ".menu", in_list("#list-menu"), whole=False),
    "models": Shot("?leaf=models", "#models-part .model"),
    "memory": Shot("?leaf=memory", "#memory-part .map"),
    "settings": Shot("?leaf=settings", "#set-port"),
}
SCREENS = {"wide": (1280, 860), "narrow": (390, 844)}
THEMES, LANGUAGES = ("light", "dark"), ("en", "zh-CN")
HIGHEST = 4000


def take(browser: Browser, served: Served, folder: Path, names: list[str]) -> int:
    """All pictures of the pages named; how many."""
    places, count = fill(served), 0
    for theme in THEMES:
        for language in LANGUAGES:
            for screen, (width, height) in SCREENS.items():
                size = {"width": width, "height": height}
                looks: Any = {"viewport": size, "color_scheme": theme, "locale": language}
                context = browser.new_context(**looks)
                context.add_cookies([served.cookie])  # type: ignore[list-item]
                for name in names:
                    page = context.new_page()
                    shoot(page, served.url, PAGES[name], places)
                    page.screenshot(path=folder / f"{name}-{theme}-{language[:2]}-{screen}.png")
                    page.close()
                    count += 1
                context.close()
    return count


def shoot(page: Page, url: str, shot: Shot, places: dict[str, str]) -> None:
    """Bring a page before the camera."""
    page.goto(url + shot.query.format(**places))
    usable(page)
    shot.prepare(page)
    expect(page.locator(shot.seen).first).to_be_visible()
    if shot.whole and (size := page.viewport_size):
        high = page.evaluate("Math.max(...[...document.querySelectorAll('.leaf')].map(e => e.scrollHeight))")
        page.set_viewport_size({**size, "height": max(size["height"], min(int(high), HIGHEST))})
    page.wait_for_timeout(700)  # letters and pictures come, bars slide to their place


def main(words: list[str]) -> None:
    """See above."""
    folder, names = Path(words[0]), words[1:] or list(PAGES)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        serving(Path(home)) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        print(f"{take(browser, served, folder, names)} pictures in {folder}")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
