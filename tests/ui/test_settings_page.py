"""The page of settings in a real browser: what is written where, what is refused, keys, the end."""

from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from playwright.sync_api import Page, expect

from app import AppError, Keys, Services, Settings, load_settings, save_settings
from tests.app.fakes import make_home
from tests.ui.conftest import NewProfile, Profile, Served, usable
from ui.settings_page import SettingsPage, parsed

DARK = "rgb(28, 27, 25)"


@pytest.fixture
def settings(profile: Profile, served: Served) -> Iterator[Page]:
    """The page, opened by its address."""
    file = served.services.settings.home / "settings.toml"
    file.unlink(missing_ok=True)
    page = profile.open()
    page.get_by_role("button", name="Settings", exact=True).click()
    expect(page.locator("#set-port")).to_be_visible()
    yield page
    file.unlink(missing_ok=True)
    served.services.runtime.adopt(served.services.settings)


def test_a_field_is_written_when_it_is_left(settings: Page, served: Served) -> None:
    home = served.services.settings.home
    settings.get_by_label("Unload an idle model after").fill("30")
    settings.keyboard.press("Tab")
    line = settings.locator(".line", has=settings.locator("#set-keep_alive"))
    expect(line).to_contain_text("Saved")
    assert load_settings(home).keep_alive == 30
    settings.get_by_label("System prompt").fill("Answer in one sentence.")
    settings.keyboard.press("Tab")
    prompt = settings.locator(".line", has=settings.locator("#set-system_prompt"))
    expect(prompt).to_contain_text("Counts when Octavo starts again.")
    assert load_settings(home).system_prompt == "Answer in one sentence."
    settings.get_by_role("switch", name="Offline").check()
    expect(settings.locator(".line", has=settings.locator("#set-offline"))).to_contain_text("starts again")
    assert load_settings(home).offline
    settings.reload()
    expect(settings.locator("#set-keep_alive")).to_have_value("30")
    expect(settings.get_by_role("switch", name="Offline")).to_be_checked()


def test_what_is_said_of_one_model_is_no_general_setting(settings: Page, served: Served) -> None:
    own, model = served.services.library.store.own, load_settings(served.services.settings.home).model
    own.keep(model, context=1024, system_prompt="Only this model.")
    settings.reload()
    length = settings.locator("#set-context_length")
    expect(settings.locator("#set-num_chats")).to_have_value("8")
    expect(length).to_have_value("")
    expect(settings.locator("#set-system_prompt")).to_have_value("")
    for text in ("2,048", ""):
        length.fill(text)
        settings.keyboard.press("Tab")
        expect(length).to_have_value(text.replace(",", ""))
    own.forget(model)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("1,440", 1440), ("1 440,", None), ("1,440.5", 1440.5), ("2,5", 2.5), ("0,125", 0.125)],
)
def test_thousands_may_be_grouped(text: str, minutes: float | None) -> None:
    if minutes is None:
        with pytest.raises(AppError, match="it must be a number"):
            parsed("number", "keep_alive", text)
    else:
        assert parsed("number", "keep_alive", text) == minutes


def test_what_is_wrong_is_said_at_its_field(settings: Page, served: Served) -> None:
    for label, text, said in (
        ("Port", "70000", "“Port” is 70000; it must lie between 1 and 65535."),
        ("Port", "door", "“Port” is 'door'; it must be a whole number."),
        ("Port", "9" * 5000, "“Port” has 5,000 characters; it may have 30."),
        ("Model hub", "http://example.org", "it must be an https address"),
        ("Longest chat", "32", "“Longest chat, in tokens” is 32; it must lie between 512 and 16,777,216."),
        ("Keep free for other programs", "-3", "“Keep free for other programs, in GB” is -3.0; it must"),
    ):
        field = settings.get_by_label(label, exact=label == "Port")
        field.fill(text)
        settings.keyboard.press("Tab")
        line = settings.locator(".line", has=field)
        expect(line.get_by_role("alert")).to_contain_text(said)
        expect(field).to_have_attribute("aria-invalid", "true")
    settings.get_by_label("Port", exact=True).fill("9,100")
    settings.keyboard.press("Tab")
    expect(settings.locator("#set-port-alarm")).to_be_hidden()
    assert load_settings(served.services.settings.home).port == 9100


def test_language_and_theme_at_once_and_for_good(profile: Profile, settings: Page) -> None:
    settings.get_by_role("radio", name="Dark").check(force=True)
    settings.wait_for_function(
        "colour => getComputedStyle(document.body).backgroundColor === colour", arg=DARK
    )
    settings.get_by_role("radio", name="中文").check(force=True)
    expect(settings.get_by_role("heading", level=1)).to_have_text("设置")
    expect(settings.locator("html")).to_have_attribute("lang", "zh-CN")
    usual = profile.open()
    expect(usual.get_by_role("heading", name="空白的一页。")).to_be_visible()
    first = profile.context.new_page()  # right after <head>, before anything is drawn
    first.goto(profile.url, wait_until="commit")
    first.wait_for_function("document.body")
    assert first.evaluate("[document.documentElement.lang, document.documentElement.dataset.theme]") == [
        "zh-CN",
        "dark",
    ]
    usable(first)
    settings.bring_to_front()
    settings.get_by_role("radio", name="跟随浏览器").click(force=True)
    expect(settings.get_by_role("heading", level=1)).to_have_text("Settings")


def test_the_key_is_shown_on_demand_and_renewed(settings: Page, served: Served) -> None:
    keys = served.services.keys
    secret = settings.locator("#settings-part .secret")
    assert keys.api_key not in settings.content()
    settings.locator("#show-key").click()
    expect(secret).to_have_text(keys.api_key)
    settings.locator("#show-key").click()
    expect(secret).to_have_text("•" * 16)
    before = keys.api_key
    settings.locator("#renew-key").click()
    settings.locator("dialog").get_by_role("button", name="Renew").click()
    expect(secret).not_to_have_text("•" * 16)
    assert keys.api_key != before and secret.inner_text() == keys.api_key
    assert (served.services.settings.home / "key").read_text() == keys.api_key


def test_licences_and_diagnostics(settings: Page, tmp_path: Path) -> None:
    settings.get_by_text("Licences of all packages").click()
    numpy = settings.locator(".packages li", has_text="numpy ").first
    expect(numpy).to_contain_text("BSD")
    numpy.get_by_role("button").click()
    expect(numpy.locator("pre")).to_contain_text("Redistribution")
    with settings.expect_download() as saved:
        settings.locator("#diagnostics").click()
    packed = saved.value.path().read_bytes()
    assert saved.value.suggested_filename == "octavo-diagnostics.zip"
    assert "about.json" in zipfile.ZipFile(io.BytesIO(packed)).namelist()


def test_a_restart_at_another_port_says_where(tmp_path: Path) -> None:
    home, asked = make_home(tmp_path), threading.Event()

    def page(port: int) -> SettingsPage:
        services = SimpleNamespace(settings=Settings(home, port=port), keys=Keys(home))
        return SettingsPage(cast(Services, services), asked.set)

    usual, given = page(8642), page(9000)  # the second by --port, which counts at the next start, too
    assert usual.start_again() == {} and asked.is_set()
    save_settings(home, {"port": 8711})
    assert usual.start_again()["link"].startswith("http://127.0.0.1:8711/enter?t=")
    assert given.start_again() == {}


def test_restart_and_quit(settings: Page, served: Served, profile: Profile) -> None:
    settings.locator("#restart").click()
    assert not served.asked_restart.is_set()
    settings.locator("dialog").get_by_role("button", name="Restart Octavo").click()
    expect(settings.locator("#settings-part .told")).to_contain_text("starts again")
    assert served.asked_restart.wait(5)
    served.asked_restart.clear()
    settings.locator("#quit").click()
    settings.keyboard.press("Escape")
    expect(settings.locator("dialog")).to_have_count(0)
    assert not served.services.instance.asked_to_end
    settings.locator("#quit").click()
    expect(settings.locator("dialog")).to_contain_text("Private chats are gone for good.")
    settings.locator("dialog").get_by_role("button", name="Quit Octavo").click()
    expect(settings.locator("#settings-part .told")).to_contain_text("Octavo is ending")
    assert served.services.instance.asked_to_end
    (served.services.settings.home / "instance.quit").unlink()
    settings.context.set_offline(True)  # as when it has ended
    settings.locator("#new-chat").click()
    expect(settings.locator("#head-part .model")).to_be_hidden()  # it was noticed
    expect(settings.locator(".notice.info")).to_have_text("Octavo is ending. You can close this tab.")
    settings.locator('[data-page-link="settings"]').click()
    expect(settings.locator("#settings-part .told")).to_have_text("Octavo is ending. You can close this tab.")
    expect(settings.locator("#settings-part .told.is-bad")).to_have_count(0)
    settings.context.set_offline(False)
    expect(settings.locator("#settings-part .told")).to_be_hidden()  # it was started again: the page is new
    profile.errors[:] = [error for error in profile.errors if "DISCONNECTED" not in error]


def test_a_narrow_screen(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, viewport={"width": 390, "height": 844}).open("?leaf=settings")
    expect(page.locator("#set-port")).to_be_visible()
    wide = "[...document.querySelectorAll('#settings-part *')]"
    assert page.evaluate(f"{wide}.filter(e => e.getBoundingClientRect().right > 391).length") == 0
