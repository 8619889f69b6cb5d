"""From the command to the answer: `octavo run`, a real browser, the real engine and the starter model."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.ui.conftest import answer, browser, usable
from tests.ui.test_main import free_port

__all__ = ["browser"]  # the fixture
ROOT = Path(__file__).resolve().parents[1]
LOADED_MS = 240_000  # the first start of all compiles the kernels


@pytest.fixture(scope="module")
def link(starter_model: Path) -> Iterator[str]:
    """The page's one-time link."""
    command = [sys.executable, "-m", "ui", "run", "--no-browser", "--port", str(free_port())]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split("Octavo is ready: ")[1].strip()
        process.send_signal(signal.SIGINT if os.name != "nt" else signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()


def ask(page: Page, question: str) -> None:
    page.fill("#draft", question)
    page.press("#draft", "Enter")
    expect(page.locator("#talk .said").last).to_have_text(question)


def test_a_newcomer_talks_to_a_real_model(link: str, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    usable(page)
    ask(page, "What is the opposite of hot? One word.")  # while the model is still loading
    expect(page.locator("#head-part .state.ready")).to_be_attached(timeout=LOADED_MS)
    figures = page.locator("#talk .figures").last
    expect(figures).to_contain_text("tokens/s", timeout=LOADED_MS)
    assert answer(page).text_content()

    ask(page, "Count from one to one thousand, in words.")
    expect(answer(page)).to_contain_text(re.compile(r"\w"), timeout=LOADED_MS)
    page.keyboard.press("Control+Shift+O")
    expect(page.get_by_role("heading", name="A blank page.")).to_be_visible()
    ask(page, "Write a long story about a river.")  # the first chat goes on
    expect(answer(page)).to_contain_text(re.compile(r"\w+ \w+"), timeout=LOADED_MS)
    page.keyboard.press("Escape")
    expect(page.locator("#talk .figures").last).to_contain_text("stopped", timeout=LOADED_MS)
    begun = answer(page).text_content()
    page.locator(".chat .open", has_text="opposite of hot").click()
    expect(page.locator("#talk .said").last).to_have_text("Count from one to one thousand, in words.")
    if page.locator("#stop").is_visible():
        page.keyboard.press("Escape")
    expect(page.locator("#talk .figures")).to_have_count(2)  # that answer's are there, too
    figures = page.locator("#talk .figures").last
    expect(figures).to_contain_text(" cached", timeout=LOADED_MS)
    cached = re.search(r"(\d+) of (\d+) cached", figures.text_content() or "")
    assert cached and 0 < int(cached[1]) < int(cached[2])  # the conversation before was not computed again
    page.reload()
    usable(page)
    page.locator(".chat .open", has_text="river").click()
    expect(answer(page)).to_have_text(begun or "")
    context.close()
