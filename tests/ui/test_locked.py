"""The page at a locked door."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from starlette.datastructures import Headers

from tests.ui.conftest import Served
from ui.locked import COMMAND, locked


@pytest.mark.parametrize(
    ("languages", "found"), [("zh-HK,en;q=0.8", "此页面已上锁"), ("en", "is locked"), ("", "is locked")]
)
def test_it_speaks_the_person_s_language(languages: str, found: str) -> None:
    page = locked(Headers({"accept-language": languages}))
    assert page.status_code == 401 and found in bytes(page.body).decode()


def test_it_says_what_to_do(served: Served, browser: Browser) -> None:
    context = browser.new_context(color_scheme="dark")
    page = context.new_page()
    for address in (served.url, served.url + "enter?t=used", served.url + "?chat=x"):
        response = page.goto(address)
        assert response is not None and response.status == 401
        expect(page.get_by_role("heading", name="This page is locked.")).to_be_visible()
        expect(page.locator("code")).to_have_text(COMMAND)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(28, 27, 25)"
    context.close()
