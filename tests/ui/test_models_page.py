"""The page of models in a real browser, against a hub of our own: look, search, fetch, pause, use, delete."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from app.models.disk import SPARE, DiskUse
from app.models.first_run import Proposal
from app.models.library import Library
from app.settings import Settings
from tests.app.fake_hub import FakeHub, Handler, Repo, folder_repo, gguf_repo, serving_hub, sha256
from tests.tiny_models import write_tiny_gguf
from tests.ui.conftest import NewProfile, Profile, Served, serving, usable
from tests.ui.payloads import PAYLOADS
from ui.models_page import ModelsPage

TOKEN = "hf_a-token-that-must-not-get-out"
PATIENCE_S = 20
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def hub() -> Iterator[FakeHub]:
    with pytest.MonkeyPatch.context() as patched, serving_hub(patched) as hub:
        hub.token = TOKEN
        yield hub


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def shared_models(hub: FakeHub, home: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "home", lambda: home / "person")
        for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS", "XDG_CACHE_HOME"):
            patched.delenv(name, raising=False)
        with serving(home / "octavo", hub=hub.url) as served:
            yield served


@pytest.fixture
def served(shared_models: Served, hub: FakeHub) -> Iterator[Served]:
    """The server of this file; what a test fetched, brought in or left unfinished is gone after it."""
    hub.repos.clear()
    hub.faults.clear()
    hub.asked.clear()
    hub.add(gguf_repo(size=400_000))
    hub.add(folder_repo())
    yield shared_models
    library = shared_models.services.library
    for each in library.underway():
        library.downloads.cancel(each.key)
    for each in library.store.installed():
        library.store.remove(each.key)
    for id in library.store.own.entries():
        library.store.own.forget(id)
    library.token.forget()


@pytest.fixture
def library(served: Served) -> Library:
    return served.services.library


@pytest.fixture
def page(profile: Profile) -> Page:
    page = profile.open("?leaf=models")
    expect(page.locator("#models-part .model").first).to_be_visible()
    return page


def model(page: Page, id: str) -> Locator:
    return page.locator(f'#models-part [data-model="{id}"]')


def press(card: Locator, what: str) -> None:
    card.locator(f'[data-do="{what}"]').click()


def search(page: Page, text: str) -> None:
    page.fill("#models-search", text)
    page.click("#models-hub")
    expect(page.get_by_role("heading", name="On Hugging Face")).to_be_visible()


class Slow:
    """A large file of the hub that comes in two halves, the second when the test lets it."""

    def __init__(self, hub: FakeHub, repo: Repo) -> None:
        self.content = next(content for name, content in repo.files.items() if name.endswith(".gguf"))
        self.go = threading.Event()
        hub.faults[f"/cdn/{sha256(self.content)}"] = self.send

    def send(self, handler: Handler) -> None:
        if "range" in handler.headers:
            return handler.send(self.content)
        handler.send(self.content, most=len(self.content) // 2, pause=lambda _: self.go.wait(PATIENCE_S))


def test_the_catalogue_says_what_fits_and_why(page: Page) -> None:
    card = model(page, "qwen3-0.6b")
    expect(card.get_by_role("heading", name="Qwen3 0.6B")).to_be_visible()
    expect(card).to_contain_text("Apache-2.0")
    expect(card).to_contain_text("596 M parameters")
    expect(card).to_contain_text("context 40,960")
    expect(card).to_contain_text("For conversation, reasoning, and several languages")
    badge = card.locator(".badge")
    assert badge.inner_text() in ("fits", "tight", "too large", "recommended")
    reason = badge.get_attribute("title") or ""
    assert "tokens/s" in reason or "free" in reason
    expect(card.locator(f"#{badge.get_attribute('aria-describedby')}".replace(".", "\\."))).to_have_text(
        reason
    )
    card.get_by_role("combobox").select_option("qwen3-0.6b@fp8")
    expect(card.get_by_role("combobox")).to_have_value("qwen3-0.6b@fp8")
    page.fill("#models-search", "mixtral")
    expect(page.locator("#models-part .model")).to_have_count(1)
    page.fill("#models-search", "code")  # a purpose
    expect(model(page, "qwen2.5-coder-7b")).to_contain_text("For code")
    page.fill("#models-search", "nonsense")
    expect(page.get_by_text("No model here is called “nonsense”.")).to_be_visible()


def test_the_model_to_take_is_marked_with_its_reason(
    page: Page, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = Proposal("olmo-2-7b", "OLMo 2 7B", "bf16", 400_000, "It suits this machine.")
    monkeypatch.setattr("app.models.library.largest", lambda *given: best)
    served.services.library.store.own.keep("olmo-2-7b", system_prompt="x")  # the list is another
    card = page.locator('[data-section="catalogue"] .model').first
    expect(card).to_contain_text("OLMo 2 7B Instruct", timeout=PATIENCE_S * 1000)
    expect(card.locator(".badge")).to_have_text("recommended")
    expect(card).to_contain_text("It suits this machine.")


def test_of_what_is_too_large_the_smallest_is_shown(page: Page, library: Library) -> None:
    row = next(row for row in library.rows() if not row.choice and row.variants[0].badge == "large")
    least = min(row.variants, key=lambda each: each.bytes)
    card = model(page, row.id)
    expect(card.get_by_role("combobox")).to_have_value(least.key)
    assert least.reason.split(" needs ")[1].split(";")[0] in card.inner_text()
    expect(card.locator('[data-do="start"]')).to_have_class("quiet")


def test_what_the_disk_has_no_room_for_is_said(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Library, "disk", lambda self: DiskUse(0, 0, SPARE + 200_000_000, 0))
    expect(model(page, "qwen2.5-coder-1.5b")).to_contain_text(
        "larger than the 200 MB that may still be downloaded"
    )
    expect(model(page, "smollm2-135m")).not_to_contain_text("still be downloaded")


def test_from_the_hub_s_search_to_an_answer_and_the_bin(page: Page, served: Served, hub: FakeHub) -> None:
    assert not hub.asked  # nobody asks before the person does
    search(page, "tiny-gguf")
    card = model(page, "maker--tiny-gguf")
    expect(card).to_contain_text("maker/Tiny-GGUF")
    expect(card).to_contain_text("7 downloads")
    press(card, "look")
    expect(card).to_contain_text("400 kB")
    press(card, "start")
    expect(card.locator(".mark-here")).to_have_text("on this machine")
    press(card, "load")
    expect(card.locator(".mark-here")).to_have_text("answers now")
    assert served.services.runtime.status().model == "maker--tiny-gguf@gguf-q4_0"
    expect(card.locator('[data-do="remove"]')).to_have_count(0)
    press(card, "unload")
    expect(card.locator(".mark-here")).to_have_text("on this machine")
    press(card, "remove")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("alert").filter(has_text="are free again")).to_contain_text("400.")
    assert not served.services.library.store.installed()
    page.get_by_role("button", name="Back to the catalogue").click()
    expect(model(page, "qwen3-0.6b")).to_be_visible()


def test_a_download_is_paused_resumed_and_survives_a_reload(
    page: Page, hub: FakeHub, library: Library
) -> None:
    slow = Slow(hub, hub.repos["maker/Tiny-GGUF"])
    search(page, "tiny-gguf")
    card = model(page, "maker--tiny-gguf")
    press(card, "start")
    bar = card.get_by_role("progressbar")
    expect(bar).to_have_attribute("aria-label", "Download of Tiny-GGUF")
    expect(card.locator(".numbers")).to_contain_text("200 kB of 400 kB")
    page.reload()
    usable_models(page)
    card = model(page, "maker--tiny-gguf")  # now among those of this machine
    expect(card.locator(".numbers")).to_contain_text("200 kB of 400 kB")
    press(card, "pause")
    expect(card.locator(".numbers")).to_have_text("paused at 200 kB of 400 kB")
    slow.go.set()
    card.locator('[data-do="resume"]').focus()
    page.keyboard.press("Enter")
    expect(card.locator(".mark-here")).to_have_text("on this machine")
    assert library.store.find("maker--tiny-gguf").path.is_dir()


def usable_models(page: Page) -> None:
    expect(page.locator("#models-part .model").first).to_be_visible()


def test_a_download_is_cancelled(page: Page, hub: FakeHub, library: Library) -> None:
    slow = Slow(hub, hub.repos["maker/Tiny-GGUF"])
    search(page, "tiny-gguf")
    card = model(page, "maker--tiny-gguf")
    press(card, "start")
    expect(card.locator(".numbers")).to_contain_text("200 kB of 400 kB")
    press(card, "cancel")
    expect(card.locator('[data-do="start"]')).to_be_visible()
    slow.go.set()
    assert not library.underway()


def test_a_download_that_fails_says_why_and_can_be_tried_again(page: Page, hub: FakeHub) -> None:
    repo = hub.repos["maker/Tiny-GGUF"]
    repo.gated = True
    search(page, "tiny-gguf")
    card = model(page, "maker--tiny-gguf")
    expect(card.locator(".badge.gated")).to_have_text("gated")
    press(card, "start")
    expect(card.get_by_role("alert")).to_contain_text("it is gated or private. Give Octavo a token")
    page.fill("#models-token", TOKEN)
    page.click("#models-keep")
    expect(page.locator("#models-token-kept")).to_have_text(
        "A token is kept in a file that only you can read."
    )
    expect(page.locator("#models-token")).to_have_value("")
    press(card, "resume")
    expect(card.locator(".mark-here")).to_have_text("on this machine")
    assert TOKEN not in page.content()
    page.click("#models-forget")
    expect(page.locator("#models-token-kept")).to_be_hidden()


def test_a_hub_that_is_ill_is_a_sentence(page: Page, hub: FakeHub) -> None:
    hub.faults["/api/models"] = lambda handler: handler.say(429, {}, {"Retry-After": "90"})
    page.fill("#models-search", "tiny")
    page.keyboard.press("Enter")
    alert = page.get_by_role("alert").filter(has_text="asks to wait 90 s")
    expect(alert).to_be_visible()
    expect(page.locator("#models-hub")).to_be_enabled()
    alert.get_by_role("button", name="Dismiss").click()
    expect(alert).to_be_hidden()


def test_files_of_one_s_own_and_of_other_programs(
    page: Page, library: Library, home: Path, starter_model: Path
) -> None:
    folder = home / "person" / ".lmstudio" / "models" / "maker" / "small"
    folder.mkdir(parents=True, exist_ok=True)
    theirs, mine = folder / "theirs.gguf", home / "mein Modell é.gguf"
    write_tiny_gguf(mine, context_length=8192)
    theirs.symlink_to(starter_model)
    expect(page.locator("[data-section=own] ~ [data-section=catalogue]")).to_have_count(
        1
    )  # above the long list
    page.fill("#models-path", str(home / "nothing.gguf"))
    page.click("#models-bring")
    expect(page.get_by_role("alert").filter(has_text="There is no file or folder")).to_be_visible()
    page.fill("#models-path", str(mine))
    page.click("#models-bring")
    card = model(page, "mein-modell-e")
    expect(card).to_contain_text(f"Used where it lies: {mine}")
    expect(card.locator(".badge")).to_have_text("fits")
    expect(card).to_contain_text("context 8,192")
    found = page.locator("#models-part .found")
    expect(found).to_contain_text("LM Studio · 98.4 MB")
    found.get_by_role("button").click()
    expect(found).to_have_count(0)
    listed = model(page, "smollm2-135m")  # which is what it is
    expect(listed).to_contain_text(f"Used where it lies: {theirs}")
    expect(listed.locator("[data-do=load]")).to_be_visible()
    expect(listed.locator("[data-do=start]")).to_have_count(0)
    assert list(library.store.own.entries()) == ["mein-modell-e", "smollm2-135m@gguf-q4_1"]
    press(card, "remove")
    expect(page.get_by_role("dialog")).to_contain_text("The file stays where it is")
    page.get_by_role("dialog").get_by_role("button", name="Take off the list").click()
    expect(card).to_have_count(0)
    assert mine.exists()
    theirs.unlink()


def test_how_a_model_is_used(page: Page, hub: FakeHub, library: Library) -> None:
    fetch = threading.Event()
    library.search("tiny")
    library.start("maker--tiny-gguf", fetch.set)
    assert fetch.wait(PATIENCE_S)
    card = model(page, "maker--tiny-gguf")
    press(card, "usage")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Temperature")).to_have_attribute("placeholder", "0.7")
    dialog.get_by_label("System prompt").fill("Be brief.")
    dialog.get_by_label("Temperature").fill("hot")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("“hot” is not a number.")
    dialog.get_by_label("Temperature").fill("99")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("“Temperature” is 99; it must lie between 0.0 and 5.0.")
    dialog.get_by_label("Temperature").fill("1,500")  # grouped, as the page shows numbers
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("“Temperature” is 1,500; it must")
    dialog.get_by_label("Temperature").fill("0,2")
    dialog.get_by_label("Context").fill("32")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text(
        "“Context in tokens” is 32; it must lie between 512 and 16,777,216."
    )
    dialog.get_by_label("Context").fill("2,048")  # as it is shown
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    entry = library.store.own.entries()["maker--tiny-gguf"]
    assert (entry.system_prompt, entry.context) == ("Be brief.", 2048)
    assert entry.sampling == {"temperature": 0.2}
    press(card, "usage")
    expect(page.get_by_role("dialog").get_by_label("Temperature")).to_have_value("0.2")
    page.keyboard.press("Escape")


def test_a_bad_file_of_one_s_own_is_said(page: Page, library: Library) -> None:
    library.store.own.path.write_text("models = 3")
    expect(page.get_by_text("is left out: models must be a list")).to_be_visible()
    library.store.own.path.unlink()
    expect(page.get_by_text("is left out")).to_be_hidden()


def test_what_the_hub_and_files_say_runs_nothing(page: Page, hub: FakeHub, library: Library) -> None:
    for number, payload in enumerate(PAYLOADS):
        about = {**gguf_repo().about, "cardData": {"license": payload}}
        name = f"evil/{number}-{payload}"
        hub.repos[name] = Repo(name, {f"{payload}-Q4_0.gguf": b"x"}, about)
    told = [payload for payload in PAYLOADS if payload.isprintable()][:20]
    for number, payload in enumerate(told):
        library.store.own.keep(f"evil-{number}", path=f"/{payload}", name=payload)
    expect(page.locator('[data-section="here"] .model h3')).to_have_text(told)
    search(page, "evil")
    expect(page.locator('[data-section="hub"] .model')).to_have_count(len(PAYLOADS))
    hub.faults["/api/models"] = lambda handler: handler.say(500, {}, {"X-Error-Message": told[1]})
    page.fill("#models-search", told[1])
    page.click("#models-hub")
    expect(page.get_by_role("alert").filter(has_text="answered 500")).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert page.locator("#models-part :is(script, img, iframe, object, form, svg:not(.icon))").count() == 0


def test_nothing_is_asked_while_another_page_is_open(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, frame = threading.Semaphore(0), ModelsPage.frame

    def counted(page: ModelsPage, data: object) -> dict[str, object]:
        looks.release()
        return frame(page, data)

    monkeypatch.setattr(ModelsPage, "frame", counted)
    assert looks.acquire(timeout=PATIENCE_S) and looks.acquire(timeout=PATIENCE_S)
    page.locator('[data-page-link="memory"]').click()
    expect(page.locator("#models-part")).to_be_hidden()
    while looks.acquire(timeout=0.5):  # what was on its way
        pass
    assert not looks.acquire(timeout=1.5)
    page.locator('[data-page-link="models"]').click()
    assert looks.acquire(timeout=PATIENCE_S)


def test_it_speaks_chinese(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, locale="zh-CN").open("?leaf=models")
    expect(page.get_by_role("heading", name="目录")).to_be_visible()
    expect(model(page, "qwen3-0.6b")).to_contain_text("参数")
    expect(page.locator("#models-part")).not_to_contain_text("tokens/s")
    expect(page.locator("#models-part")).to_contain_text("token/秒")


def test_a_narrow_screen(served: Served, new_profile: NewProfile) -> None:
    page = new_profile(served, **PHONE).open("?leaf=models")
    usable_models(page)
    search(page, "tiny")
    expect(model(page, "maker--tiny")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    wide = "[...document.querySelectorAll('#models-part *')]"
    assert page.evaluate(wide + ".filter(e => e.getBoundingClientRect().right > 391).length") == 0


def test_the_first_day(
    tmp_path: Path, hub: FakeHub, new_profile: NewProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but the starter is known here; what is proposed is made to be our small model."""
    with serving(tmp_path, hub=hub.url) as fresh:
        library = fresh.services.library
        library.adopt(Settings(library.settings.home, hub=hub.url))
        hub.add(gguf_repo(size=400_000))
        library.search("tiny")
        proposal = Proposal("maker--tiny-gguf", "Tiny", "GGUF Q4_0", 400_000, "It suits this machine.")
        monkeypatch.setattr("app.models.library.propose", lambda *given, **more: proposal)
        (content,) = (data for name, data in hub.repos["maker/Tiny-GGUF"].files.items() if "gguf" in name)
        hub.faults[f"/cdn/{sha256(content)}"] = lambda handler: handler.say(403, {})
        page = new_profile(fresh).open()
        card = page.locator("#first-run")
        card.locator("#first-get").click()
        expect(card.get_by_role("alert")).to_contain_text("403")
        card.locator("#first-cancel").click()
        expect(card.get_by_role("alert")).to_have_count(0)
        slow = Slow(hub, hub.repos["maker/Tiny-GGUF"])
        expect(card).to_contain_text("It suits this machine.")
        expect(card.locator("#first-starter")).to_have_text("Begin with the starter model (98.4 MB)")
        expect(card.locator("#first-get")).to_have_text("Download Tiny (400 kB)")
        card.locator("#first-get").click()
        expect(card.locator(".numbers")).to_contain_text("200 kB of 400 kB")
        slow.go.set()
        expect(card).to_be_empty()
        expect(page.locator("#head-part, .head").first).to_contain_text("Tiny-GGUF")
        assert fresh.services.runtime.status().model == "maker--tiny-gguf@gguf-q4_0"


def test_not_on_the_first_day(tmp_path: Path, hub: FakeHub, new_profile: NewProfile) -> None:
    hub.asked.clear()
    with serving(tmp_path, hub=hub.url, offline=True) as fresh:
        library = fresh.services.library
        library.adopt(Settings(library.settings.home, hub=hub.url, offline=True))
        page = new_profile(fresh).open()
        card = page.locator("#first-run")
        expect(card).to_contain_text("The starter model: the hub is not to be asked.")
        expect(card.locator("#first-get")).to_have_count(0)
        for width, height in ((390, 844), (683, 640), (1280, 600), (1280, 800)):
            page.set_viewport_size({"width": width, "height": height})
            expect(page.locator("#draft")).to_be_in_viewport(ratio=1)
        card.locator("#first-other").click()
        expect(page.get_by_text("Octavo is set to stay offline")).to_be_visible()
        expect(page.locator("#models-hub")).to_be_hidden()
        page.go_back()
        card.locator("#first-not-now").click()
        expect(card).to_be_empty()
        page.reload()
        usable(page)
        expect(card).to_be_empty()
    assert not hub.asked
