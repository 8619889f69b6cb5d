"""What the page looks like: themes, narrow screens, the second language, contrast, names of things."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import NewProfile, Profile, Served, answer, say, usable
from ui.shell import ASSETS

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
LIGHT, DARK = "rgb(251, 249, 245)", "rgb(28, 27, 25)"


def paper(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.querySelector('.gradio-container')).backgroundColor"))


@pytest.mark.parametrize(("system", "colour"), [("light", LIGHT), ("dark", DARK)])
def test_the_theme_follows_the_system(
    served: Served, new_profile: NewProfile, system: str, colour: str
) -> None:
    page = new_profile(served, color_scheme=system).open()
    assert paper(page) == colour
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == colour


def test_a_chosen_theme_stays(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, color_scheme="light").open()
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function("colour => getComputedStyle(document.body).backgroundColor === colour", arg=DARK)
    page.reload()
    usable(page)
    assert paper(page) == DARK
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert "dark" in (
        page.locator("body").get_attribute("class") or ""
    )  # Gradio's own colours, of code for one
    page.get_by_role("button", name="System").click()
    page.wait_for_function("colour => getComputedStyle(document.body).backgroundColor === colour", arg=LIGHT)


def test_a_narrow_screen(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, **PHONE).open()
    stream = say(page, served, "w" * 120)
    stream.write(
        "A row:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n" + "long line " * 30 + "\n```\n" + "x" * 200
    )
    stream.finish()
    expect(answer(page).locator("table")).to_be_visible()
    expect(page.locator("#send")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    wide = "[...document.querySelectorAll('#talk .prose > *, #talk .foot, #desk-part *')]"
    assert page.evaluate(wide + ".filter(e => e.getBoundingClientRect().right > 391).length") == 0
    expect(page.locator("#rail-part")).not_to_be_in_viewport()
    page.get_by_role("button", name="Show or hide the chats").tap()
    expect(page.locator("#new-chat")).to_be_in_viewport()
    page.locator("#new-chat").tap()
    expect(page.locator("#rail-part")).not_to_be_in_viewport()
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    page.get_by_role("button", name="Show or hide the chats").tap()
    page.locator("#scrim").tap(position={"x": 370, "y": 400})
    expect(page.locator("#rail-part")).not_to_be_in_viewport()


# what can be pressed or written into, and lies below the line that says what was done
COVERED = """() => { const toast = document.getElementById("toast").getBoundingClientRect();
    const isInFront = document.documentElement.classList.contains("drawer-open");
    const place = document.querySelector(isInFront ? "#rail-part" : "body");
    const pressed = [...place.querySelectorAll(":is(button, input, textarea, select):not(#toast *)")]
        .filter(each => each.checkVisibility({ visibilityProperty: true }));
    const isBelow = ({ left, right, top, bottom }) => left < toast.right && right > toast.left
        && top < toast.bottom && bottom > toast.top;
    return pressed.filter(each => isBelow(each.getBoundingClientRect())).map(each => each.outerHTML) }"""
MIDDLE = "e => { const { left, right } = e.getBoundingClientRect(); return (left + right) / 2 }"


def test_what_is_said_for_a_moment_covers_nothing_one_needs(page: Page) -> None:
    """In the middle of the page, wherever the list is."""
    toast = page.locator("#toast")
    page.evaluate(
        "octavo.toast('“A chat with a title that has some words” is deleted.', { label: 'Undo', run() {} })"
    )
    for width, is_open in ((1600, True), (1600, False), (390, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 844})
        if page.locator("#rail-part").is_visible() != is_open:
            page.keyboard.press("Control+b")
        page.locator("#rail-part").evaluate("e => Promise.all(e.getAnimations().map(each => each.finished))")
        for name in ("chat",) if is_open and width == 390 else ("chat", "models", "settings"):
            page.evaluate("name => octavo.turnPage(name)", name)
            part = page.locator("#page" if name == "chat" else f"#{name}-part")
            expect(part).to_be_visible()
            assert toast.evaluate(MIDDLE) == pytest.approx(part.evaluate(MIDDLE), abs=1)
            assert name != "chat" or page.evaluate(COVERED) == []  # the other pages scroll below it


@pytest.mark.parametrize("width", [768, 1280])
@pytest.mark.parametrize(
    ("language", "words"), [("en", "/ anywhere else jumps to this box"), ("zh-CN", "在别处按 / 跳到输入框")]
)
def test_the_keys_fit_on_one_line(
    served: Served, new_profile: NewProfile, language: str, words: str, width: int
) -> None:
    page = new_profile(served, locale=language, viewport={"width": width, "height": 860}).open()
    keys = page.locator("#keys")
    expect(keys).to_contain_text(words)
    line = keys.evaluate("e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)")
    assert round(line) == 1


def test_chinese(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, locale="zh-CN").open()
    expect(page.get_by_role("heading", name="空白的一页。")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#draft")).to_have_attribute("placeholder", "输入消息")
    expect(page.get_by_role("heading", level=1)).to_have_text("新对话")
    expect(page).to_have_title("新对话 · Octavo")


def test_everything_to_press_has_a_name(page: Page, served: Served) -> None:
    stream = say(page, served, "Hello")
    stream.write("Hi")
    stream.finish()
    expect(page.locator("#talk .figures").last).to_contain_text("tokens/s")
    nameless = """[...document.querySelectorAll("button, input, textarea, [role=meter], nav, dialog")]
        .filter(e => e.checkVisibility() && !(e.ariaLabel || e.title || e.textContent.trim()))
        .map(e => e.outerHTML)"""
    assert page.evaluate(nameless) == []
    expect(page.get_by_role("log", name="Conversation")).to_be_visible()
    page.locator("#search").focus()
    page.keyboard.press("Shift+Tab")  # the list's menu
    page.keyboard.press("Shift+Tab")
    expect(page.locator("#new-chat")).to_be_focused()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


COUNT = """window.asked = 0; const draw = requestAnimationFrame;
    window.requestAnimationFrame = run => { window.asked += 1; return draw(run) };"""
RESTS = """async () => { for (let tries = 0; tries < 10; tries++) {
    const before = asked;
    await new Promise(done => setTimeout(done, 1500));
    if (asked - before < 3) return true;
} return false }"""


def test_an_idle_page_rests(profile: Profile, served: Served) -> None:
    """Frames are asked for by nobody: Gradio's progress clocks would take every one."""
    profile.context.add_init_script(COUNT)
    page = profile.open()
    stream = say(page, served, "Hello")
    stream.finish()
    expect(page.locator("#send")).to_be_visible()
    assert page.evaluate(RESTS)


def _tokens(selector: str) -> dict[str, str]:
    css = (ASSETS / "page" / "paper.css").read_text("utf-8")
    block = css[css.index(selector) :].partition("}")[0]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


@pytest.mark.parametrize("selector", ["html {", 'html[data-theme="dark"] {'])
def test_text_stands_out_from_what_it_stands_on(selector: str) -> None:
    """WCAG 2.2, level AA: 4.5 to 1."""
    tokens = _tokens(selector)
    grounds = ("paper", "rail", "sheet", "hover", "said")
    pairs = [(ink, ground) for ink in ("ink", "soft") for ground in grounds]
    pairs += [
        ("alarm", "alarm-wash"),
        ("ink", "cloth-wash"),
        ("on-cloth", "cloth"),
        ("sheet", "alarm"),
        ("cloth", "paper"),
    ]
    pairs += [(name, "rail") for name in tokens if name.startswith("code-")]
    for ink, ground in pairs:
        dark, light = sorted((_luminance(tokens[ink]), _luminance(tokens[ground])))
        assert (light + 0.05) / (dark + 0.05) >= 4.5, (ink, ground)
