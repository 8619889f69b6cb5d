"""How an answer is set: code with its language and a copy button, formulas, wide tables; how it is read."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.ui.conftest import NewProfile, Profile, Served, answer, chat_of, say

TEXT = """The area is $\\pi r^2$; it costs $5, not $6. \\(a\\) and

$$\\int_0^3 x\\,dx$$

\\[ b \\]

```python
price = "$x$"
```

```
no language
```

| one | two | three | four | five |
|---|---|---|---|---|
| aaaaaaaaaaaaaaaaaaaaaaaa | bbbbbbbbbbbbbbbbbbbbbbbbb | cccccccccccccccccccc | dddddddddddddddd | eeeee |
"""


@pytest.fixture
def answered(page: Page, served: Served) -> Page:
    stream = say(page, served, "Show me all, for $x$")
    for start in range(0, len(TEXT), 40):
        stream.write(TEXT[start : start + 40])
    stream.finish()
    expect(page.locator("#talk .figures")).to_contain_text("tokens/s")
    return page


def test_code_formulas_and_tables(answered: Page) -> None:
    page = answered
    expect(answer(page).locator(".katex")).to_have_count(4)
    expect(answer(page).locator(".katex-display")).to_have_count(2)
    expect(answer(page)).to_contain_text("it costs $5, not $6.")
    code = answer(page).locator(".code_wrap")
    expect(code.first).to_have_attribute("data-language", "python")
    expect(code.first.locator("code")).to_have_text('price = "$x$"')
    label = code.first.evaluate("e => getComputedStyle(e, '::before').content")
    assert label == '"python"'
    expect(code.first.get_by_role("button", name="Copy this code")).to_be_visible()
    expect(page.locator("#talk .said")).to_have_text("Show me all, for $x$")  # the person's own is text
    page.set_viewport_size({"width": 390, "height": 700})
    table = answer(page).locator("table")
    assert table.evaluate("e => e.scrollWidth > e.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") == 390


WATCH_PAST = """() => {
    window.changes = 0;
    new MutationObserver((records) => { changes += records.length; }).observe(document.getElementById("past"),
        { subtree: true, childList: true, characterData: true, attributes: true });
}"""


def test_an_answer_that_grows_moves_nothing_else(page: Page, served: Served) -> None:
    say(page, served, "One").finish()
    stream = say(page, served, "Two")
    stream.write("Begun")
    expect(answer(page)).to_have_text("Begun")
    expect(page.locator(".chat.is-current .dot.answering")).to_be_visible()
    page.evaluate(WATCH_PAST)
    for count in range(5):
        stream.write(f" {count}")
        expect(answer(page)).to_contain_text(f" {count}")
        # whatever moves has the page drawn 60 times a second, and there is one update after the other
        assert page.evaluate("document.getAnimations().map(each => each.effect.target.outerHTML)") == []
    assert page.evaluate("changes") == 0
    page.locator("#stop").focus()
    stream.finish()
    expect(page.locator("#draft")).to_be_focused()  # what had the cursor is gone


def test_a_long_prompt_says_how_far_it_is_read(page: Page, served: Served) -> None:
    stream = say(page, served, "Sum up this book")
    figures = page.locator("#talk .figures")
    expect(page.locator("#talk .waiting")).to_be_visible()
    expect(figures).to_have_count(0)  # a few tokens are no news
    stream.read_tokens, stream.prompt_tokens = 1000, 7019
    expect(figures).to_have_text("Reading: 1,000 of 7,019 tokens")
    stream.read_tokens = 3000
    expect(figures).to_have_text("Reading: 3,000 of 7,019 tokens")
    stream.write("It")
    expect(answer(page)).to_have_text("It")
    expect(figures).to_have_count(0)
    stream.finish()


VOICE = """window.spoken = []; window.cancelled = 0;
class Part { constructor(text) { this.text = text } }
Object.defineProperty(window, "SpeechSynthesisUtterance", { value: Part });
Object.defineProperty(window, "speechSynthesis", { value: {
    speak: (part) => { spoken.push(part); }, cancel: () => { cancelled += 1; } } });"""


def test_an_answer_is_read_aloud(served: Served, new_profile: NewProfile) -> None:
    profile = new_profile(served)
    profile.context.add_init_script(VOICE)
    page = profile.open()
    stream = say(page, served, "Read")
    stream.write("A *first* sentence. " + "And another one. " * 20 + "\n\n```\ncode()\n```\n\n你好。世界。")
    stream.finish()
    page.get_by_role("button", name="Read aloud").click()
    spoken = page.evaluate("spoken.map(part => [part.text, part.lang])")
    text = " ".join(part for part, _ in spoken)
    assert text.startswith("A first sentence. And another one.") and "code()" not in text
    assert all(len(part) <= 220 for part, _ in spoken)
    assert spoken[-1] == ["你好。世界。", "zh-CN"] and spoken[0][1] == "en-US"
    button = page.get_by_role("button", name="Stop reading")
    expect(button).to_be_focused()
    page.evaluate("spoken.at(-1).onend()")  # it has come to the end
    expect(button).to_have_count(0)
    page.get_by_role("button", name="Read aloud").click()
    button.click()
    assert page.evaluate("cancelled") >= 2
    page.get_by_role("button", name="Read aloud").click()
    page.keyboard.press("Control+Shift+O")  # another chat: silence
    page.wait_for_function("cancelled >= 3")


def test_without_a_voice_there_is_no_button(served: Served, new_profile: NewProfile) -> None:
    profile = new_profile(served)
    profile.context.add_init_script("Object.defineProperty(window, 'speechSynthesis', { value: undefined })")
    page = profile.open()
    stream = say(page, served, "Read")
    stream.write("words")
    stream.finish()
    expect(page.locator("#talk .bot-row [data-tool=copy]")).to_be_visible()
    expect(page.get_by_role("button", name="Read aloud")).to_have_count(0)


def test_another_model_s_answer_names_it(page: Page, served: Served, profile: Profile) -> None:
    stream = say(page, served, "Who?")
    stream.write("me")
    stream.finish()
    expect(page.locator("#talk .figures")).to_contain_text("tokens/s")
    expect(page.locator("#talk .figures")).not_to_contain_text("fake")
    page.evaluate("octavo.set({ status: { ...octavo.state.status, name: 'another' } })")
    expect(page.locator("#talk .figures")).to_contain_text("fake · 50 tokens/s")
    assert chat_of(page)
