"""The real page on the real app in a real browser; only the model is a stand-in: the test writes its answers.

One server for all tests of a process, one browser for a file. Each test has a browser profile of its own, and
at its end it is checked that nothing was asked of another machine and the page's scripts had no error.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Route, expect, sync_playwright

import app
from app import Services, Settings
from installer.browser import find_browser
from tests.app.fakes import FakeModel, FakeStream, fake_loader, make_home, model_file

expect.set_options(timeout=20_000)


@dataclass
class Served:
    """A running page. `model` is what answers."""

    url: str
    services: Services
    model: FakeModel
    asked_restart: threading.Event
    app: Any

    @property
    def cookie(self) -> dict[str, str]:
        guard = self.services.guard
        return {"name": guard.cookie, "value": guard.keys.session(guard.port), "url": self.url}


@contextmanager
def serving(folder: Path, gate: threading.Event | None = None, **more: Any) -> Iterator[Served]:
    """The page with a model that waits for `gate`; `more` are settings."""
    from ui.pages import build
    from ui.shell import serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home, model, restart = make_home(folder), FakeModel(), threading.Event()
    services = app.build(
        Settings(home, port=port, model=str(model_file(home)), **more), fake_loader(model, gate)
    )
    blocks, _ = build(services, restart.set)
    serve(blocks, port, services.guard.wrap, app.all_routes(services))
    services.runtime.start()
    try:
        yield Served(f"http://127.0.0.1:{port}/", services, model, restart, blocks.app)
    finally:
        blocks.close(verbose=False)
        services.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, Chrome or Edge; for one file, since no other event loop can run in this thread meanwhile."""
    found = find_browser()
    if found is None:
        pytest.fail(
            "These tests need Chromium, Chrome or Edge. `python3 -m installer test` says how to get one."
        )
    sandbox = (
        [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
    )  # Chromium's own does not work as root
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=found, args=sandbox)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The server of all tests but those that need one of their own."""
    with serving(tmp_path_factory.mktemp("home")) as served:
        yield served


@pytest.fixture
def served(shared: Served) -> Iterator[Served]:
    """The shared server; what a test leaves unfinished is ended, and its chats are gone for the next one."""
    tidy(shared)  # after those tests that take it as it is
    yield shared
    tidy(shared)


def tidy(shared: Served) -> None:
    """No chats, no folders, no answers under way."""
    chats, shelf = shared.services.chats, shared.services.shelf
    shared.model.refuse, shared.model.answer = None, lambda request: None
    for chat in chats.list_chats():
        chats.delete(chat.id)
    for folder in shelf.look("", 0, "").folders:
        shelf.delete_folder(folder.id)
    while not shared.model.new.empty():
        shared.model.new.get()


@pytest.fixture
def second(served: Served) -> Iterator[str]:
    """A second model beside the one in memory, which answers again afterwards."""
    library, first = served.services.library, served.services.settings.model
    path = library.settings.home.path / "second.gguf"
    path.write_bytes(b"GGUF")
    library.store.own.keep("second", path=str(path), name="Second")
    yield "second"
    library.load(first)
    library.store.own.forget("second")
    path.unlink()


@dataclass
class Profile:
    """A browser profile that has entered, and what its tabs did."""

    context: BrowserContext
    url: str
    requests: list[str] = field(default_factory=list)
    blocked: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    harmless: tuple[str, ...] = ()  # parts of errors that are expected of what is done here

    def failed(self, request: Request) -> None:
        """A request that the page's policy stopped was never made."""
        if request.failure == "csp":
            self.requests.remove(request.url)
            self.blocked.append(request.url)

    def open(self, query: str = "", url: str = "") -> Page:
        """A tab whose page can be used."""
        page = self.context.new_page()
        page.on(
            "console", lambda message: self.errors.append(message.text) if message.type == "error" else None
        )
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto((url or self.url) + query)
        usable(page)
        return page


def usable(page: Page) -> None:
    """Wait until one can write."""
    expect(page.locator("#draft")).to_be_enabled()


# a reload cuts the stream of the page that was; Gradio says so
HARMLESS = (
    "Connection errored out",
    "AbortError",
    "net::ERR_ABORTED",
    "BodyStreamBuffer was aborted",
    "network error",
)

NewProfile = Callable[..., Profile]


@pytest.fixture
def new_profile(browser: Browser) -> Iterator[NewProfile]:
    """Makes profiles, and checks at the end what they did."""
    made: list[Profile] = []

    def make(served: Served, **options: Any) -> Profile:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        context.add_cookies([served.cookie])  # type: ignore[list-item]
        profile = Profile(context, served.url)
        context.on("request", lambda request: profile.requests.append(request.url))
        context.on("requestfailed", profile.failed)
        made.append(profile)
        return profile

    yield make
    for profile in made:
        profile.context.close()
        foreign = [url for url in profile.requests if not url.startswith((profile.url, "data:", "blob:"))]
        assert foreign == []
        harmless = (*HARMLESS, *profile.harmless)
        assert [error for error in profile.errors if not any(known in error for known in harmless)] == []


@pytest.fixture
def profile(served: Served, new_profile: NewProfile) -> Profile:
    """One profile on the shared server."""
    return new_profile(served)


@pytest.fixture
def page(profile: Profile) -> Page:
    """One tab with an empty chat."""
    return profile.open()


def say(page: Page, served: Served, text: str) -> FakeStream:
    """Write a message and send it; the answer to be. The page has its chat on screen."""
    page.fill("#draft", text)
    page.press("#draft", "Enter")
    expect(page.locator("#draft")).to_have_value("")
    return served.model.next_stream()


def hold(page: Page, act: str) -> list[Route]:
    """The first request for an act, from now on, is on its way until the test lets it go on."""
    held: list[Route] = []

    def pass_on(route: Route) -> None:
        is_first = f'"{act}"' in (route.request.post_data or "") and not held
        held.append(route) if is_first else route.continue_()

    page.route("**/component_server/", pass_on)
    return held


def answer(page: Page) -> Any:
    """The newest answer."""
    return page.locator("#talk .bot-row .prose").last


def chat_of(page: Page) -> str:
    """The id of the chat on screen, as soon as it has one."""
    return str(page.wait_for_function("octavo.state.chat").json_value())
