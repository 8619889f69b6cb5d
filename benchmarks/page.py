"""What the page costs a browser and the server: a long chat that streams, an idle tab, nine tabs, the map of
memory.

The program itself runs, with a model, in a home folder of its own; the browser is real, without a screen.
A share is of one core: all of the browser's processes, or the server's, by what the system counts for them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import psutil
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, sync_playwright

import app
from app.settings import Home, Settings, environment
from installer.browser import find_browser

from .sides import Figures

ROOT = Path(__file__).resolve().parent.parent
PORT = 8650
CHATS, MESSAGES, TABS = 2, 200, 9
WATCHED_S, SETTLED_S, LOOK_S = 10.0, 5.0, 0.5
READY = "#head-part .state.ready"
TEXT = "Sew **it** `twice`."  # short, so that the model has soon read all of them
BEGUN = " ".join(map(str, range(1, 100)))  # the last answer: a model goes on with that for long
# how often what the last answer shows has changed
COUNT = """() => {
    const text = () => document.querySelector("#now .bot-row .prose")?.textContent.length;
    let last = text();
    window.updates = 0;
    new MutationObserver(() => { if (text() !== last) { last = text(); updates += 1; } })
        .observe(document.getElementById("now"), { subtree: true, childList: true, characterData: true });
}"""


@contextmanager
def program(home: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The program, started, with the link to its page."""
    command = [sys.executable, "-m", "ui", "run", "--no-browser", "--port", str(PORT)]
    environ = environment(OCTAVO_HOME=str(home)) if home else None
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environ)
    try:
        assert process.stdout is not None
        ready = next(line for line in process.stdout if line.startswith("Octavo is ready"))
        yield process, ready.partition(": ")[2].strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, Chrome or Edge without a screen."""
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work as root
        arguments = [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
        yield playwright.chromium.launch(executable_path=find_browser(), args=arguments)


def enter(link: str, first_byte: list[float] | None = None) -> CookieJar:
    """Follow the link as a browser does; when the page's first byte came is noted."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar := CookieJar()))
    with opener.open(link) as page:
        page.read(1)
        if first_byte is not None:
            first_byte.append(time.perf_counter())
    return jar


def context_of(browser: Browser, link: str, jar: CookieJar) -> BrowserContext:
    """A browser profile that has entered."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en")
    cookies = [(cookie.name, cookie.value or "") for cookie in jar]
    context.add_cookies([{"name": name, "value": value, "url": link} for name, value in cookies])
    return context


def prepare(folder: Path, models: Path) -> list[str]:
    """A home folder with the models of another one, and long chats; their ids."""
    home = Home(folder)
    home.prepare()
    for model in models.iterdir():
        (home / "models" / model.name).symlink_to(model)
    services = app.build(Settings(home))
    insert = (
        "INSERT INTO messages (id, chat, parent, depth, role, text, token_ids, tokenizer, finish, error) "
    )

    def fill(db: Any, chat: str, begin: int) -> None:
        for depth in range(MESSAGES):
            role, parent = ("user", "assistant")[depth % 2], begin + depth if depth else None
            text, finish = (BEGUN, "length") if depth == MESSAGES - 1 else (TEXT, "stop")
            row = [begin + depth + 1, chat, parent, depth, role, text, b"", "", finish, ""]
            db.execute(insert + "VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        chosen = [begin + MESSAGES, json.dumps({"ignore_eos": True, "seed": 0}), chat]
        db.execute("UPDATE chats SET leaf = ?, title = 'Long', sampling = ? WHERE id = ?", chosen)

    chats = []
    for place in range(CHATS):  # one after the other: an empty chat is given out again
        chats.append(services.chats.new_chat())
        services.store.file.transact(partial(fill, chat=chats[-1], begin=place * MESSAGES))
    services.close()
    return chats


class Costs:
    """Processor seconds of the browser's processes, which this process has started, and of the server's."""

    def __init__(self, server: int) -> None:
        self.server = psutil.Process(server)

    def browser_s(self) -> float:
        """Of all its processes."""
        mine = {self.server.pid, *(child.pid for child in self.server.children(recursive=True))}
        total = 0.0
        for child in psutil.Process().children(recursive=True):
            if child.pid not in mine and "chrom" in child.name().lower():
                total += sum(child.cpu_times()[:2])
        return total

    def server_s(self) -> float:
        """Of its process."""
        return sum(self.server.cpu_times()[:2])

    def over(self, seconds: float) -> tuple[float, float]:
        """The browser's and the server's share of a core, while some seconds pass."""
        begin = time.perf_counter(), self.browser_s(), self.server_s()
        time.sleep(seconds)
        passed = time.perf_counter() - begin[0]
        return (self.browser_s() - begin[1]) / passed, (self.server_s() - begin[2]) / passed


def opened(tab: Page, address: str) -> None:
    """Show a chat, and wait until its model can answer."""
    tab.goto(address)
    tab.wait_for_selector(READY, timeout=120_000)


def show_all(tab: Page) -> None:
    """All messages of a chat; as it is opened, it shows the last ones."""
    count, earlier = "document.querySelectorAll('#talk .message-row').length", tab.locator("#earlier")
    earlier.wait_for()
    while earlier.is_visible():
        shown = tab.evaluate(count)
        earlier.click()
        tab.wait_for_function(f"{count} > {shown}")
    tab.wait_for_function(f"{count} === {MESSAGES}")


def streaming(tab: Page, costs: Costs, name: str) -> Figures:
    """The last answer of a long chat goes on, below those of its messages that the page shows."""
    tab.get_by_role("button", name="Continue").click()
    tab.wait_for_function(
        f"document.querySelector('#now .bot-row .prose').textContent.length > {len(BEGUN) + 9}",
        timeout=120_000,
    )
    tab.evaluate(COUNT)
    begin, before = time.perf_counter(), costs.browser_s()
    while tab.locator("#stop").is_visible() and time.perf_counter() - begin < WATCHED_S:
        time.sleep(LOOK_S)
    passed, updates = time.perf_counter() - begin, int(tab.evaluate("updates"))
    share = (costs.browser_s() - before) / passed
    tab.keyboard.press("Escape")
    return {
        f"{name}_s": passed,
        f"{name}_updates_per_s": updates / passed,
        f"{name}_core_percent": 100 * share,
    }


def nine_tabs(context: BrowserContext, address: str, costs: Costs) -> Figures:
    """All opened at once, each can be used."""
    begin, before = time.perf_counter(), (costs.server_s(), costs.server.memory_info().rss)
    tabs = [context.new_page() for _ in range(TABS)]
    for tab in tabs:
        tab.goto(address, wait_until="commit")
    for tab in tabs:
        tab.wait_for_selector("#draft:enabled")
        tab.wait_for_selector("#talk .message-row")
    found = {
        "tabs_usable": float(len(tabs)),
        "tabs_s": time.perf_counter() - begin,
        "tabs_server_s": costs.server_s() - before[0],
        "tabs_server_mb": (costs.server.memory_info().rss - before[1]) / 1e6,
    }
    for tab in tabs:
        tab.close()
    return found


def main_thread_s(session: CDPSession) -> float:
    """What the tab's main thread has worked."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def block_map(tab: Page) -> Figures:
    """The page of memory, which draws the map anew each second."""
    tab.get_by_role("button", name="Memory", exact=True).click()
    tab.wait_for_selector("#memory-part .map")
    cells = tab.locator("#memory-part .map").get_attribute("aria-label") or ""
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")
    time.sleep(SETTLED_S)
    before = main_thread_s(session)
    time.sleep(WATCHED_S)
    busy = (main_thread_s(session) - before) / WATCHED_S
    return {"map_cells": float(cells.split()[0].replace(",", "")), "map_ms_per_s": 1000 * busy}


def page() -> Figures:
    """All figures, one after another."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        chats = prepare(Path(folder), Home.find() / "models")
        with program(Path(folder)) as (process, link):
            context, costs = context_of(chromium, link, enter(link)), Costs(process.pid)
            address, tab = f"{link.split('/enter')[0]}/?chat=", context.new_page()
            opened(tab, address + chats[0])
            found = streaming(tab, costs, "stream")
            opened(tab, address + chats[1])
            show_all(tab)
            found |= streaming(tab, costs, "stream_all")
            time.sleep(SETTLED_S)
            of_browser, of_server = costs.over(WATCHED_S)
            found |= {"idle_browser_percent": 100 * of_browser, "idle_server_percent": 100 * of_server}
            found |= block_map(tab)
            tab.close()
            return found | nine_tabs(context, address + chats[0], costs)
