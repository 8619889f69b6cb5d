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

from engine import Request
from installer.browser import find_browser
from tests.ui.conftest import Served, serving, usable
from tests.ui.pictures import PLAN, memory_picture

TALKS = {
    "Explain how a book is bound": """\
A bound book begins as **large sheets**, printed with several pages each.

1. *Folding.* A sheet folded once is a folio, twice a quarto, three times an **octavo** of sixteen pages.
2. *Gathering.* Folded sheets are put in order and pressed.
3. *Sewing.* Thread runs through the fold of each, and around the cords of the spine.
4. *Casing in.* Glue, a strip of mull, and the boards.

| format | folds | pages of a sheet |
|---|---|---|
| folio | 1 | 4 |
| quarto | 2 | 8 |
| octavo | 3 | 16 |""",
    "How many pages has a sheet after n folds?": """Each fold doubles the leaves, and a leaf has two pages:

$$p(n) = 2 \\cdot 2^{n}$$

```python
def pages(folds: int) -> int:
    \"\"\"Pages of a sheet after so many folds.\"\"\"
    return 2 * 2**folds

assert pages(3) == 16  # an octavo
```

So three folds give $p(3) = 16$.""",
    "Write a short poem about rain": """Rain counts the roofs it knows by heart,
a patient hand, a quiet art;
the street forgets where it began
and wears the sky as best it can.""",
    "用一句话解释什么是对开本": "对开本是把一张大纸对折一次得到的书页：两张书叶，四个页面。",
    "Plan a week in Kyoto": "Begin in the east: **Fushimi Inari** before eight, then Tofuku-ji.",
    "Fix this regular expression": r"`^\d{4}-\d\d$` wants a month as well: try `^\d{4}-(0[1-9]|1[0-2])$`.",
    "Three ideas for dinner": "- Leeks with mustard\n- Lentils, lemon and a soft egg\n- Noodles with sesame",
}


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


PAGES = {
    "blank": Shot("", "#draft", whole=False),
    "list": Shot("", ".chat", open_list, whole=False),
    "chat": Shot("?chat={chat}", "#talk .bot-row", whole=False),
    "formula": Shot("?chat={formula}", "#talk .bot-row", whole=False),
    "models": Shot("?leaf=models", "#models-part h1"),
    "memory": Shot("?leaf=memory", "#memory-part .map"),
    "settings": Shot("?leaf=settings", "#set-port"),
}
SCREENS = {"wide": (1280, 860), "narrow": (390, 844)}
THEMES, LANGUAGES = ("light", "dark"), ("en", "zh-CN")
HIGHEST = 4000


def fill(served: Served) -> dict[str, str]:
    """Write the chats; the names that addresses use."""

    def said(request: Request) -> str:
        return TALKS.get(request.messages[-1].content, "Octavo")

    served.model.answer = said
    chats = {}
    for title in reversed(TALKS):
        chats[title] = served.services.chats.send("", title)
        served.model.next_stream()
    served.model.plan, served.model.shown = PLAN, memory_picture(list(chats.values()), kept=300)
    chat, formula, *_ = TALKS
    return {"chat": chats[chat], "formula": chats[formula]}


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
