"""How long a person waits for the page, from the start of the process.

To the line "Octavo is ready", to the first byte of the page, to a composer one can type into in Chromium, to
a model that answers. It is the second start that counts: the first one ever compiles the kernels.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from installer.browser import find_browser

from .sides import Figures

ROOT = Path(__file__).resolve().parent.parent
STEPS = ("ready", "first_byte", "usable", "model")
RUNS, PORT = 5, 8650


def one_start(browser: Browser) -> dict[str, float]:
    """One start, to its end; seconds since the process was started."""
    command = [sys.executable, "-m", "ui", "run", "--no-browser", "--port", str(PORT)]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        ready = next(line for line in process.stdout if line.startswith("Octavo is ready"))
        link = ready.partition(": ")[2].strip()
        times = {"ready": time.perf_counter() - start}
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar := CookieJar()))
        with opener.open(link) as page:
            page.read(1)
            times["first_byte"] = time.perf_counter() - start
        context = browser.new_context()
        cookies = [(cookie.name, cookie.value or "") for cookie in jar]
        context.add_cookies([{"name": name, "value": value, "url": link} for name, value in cookies])
        tab = context.new_page()
        tab.goto(link.split("/enter")[0])
        tab.wait_for_selector("#draft:enabled")
        times["usable"] = time.perf_counter() - start
        tab.wait_for_selector("#head-part .state.ready", timeout=120_000)
        times["model"] = time.perf_counter() - start
        context.close()
        return times
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def startup() -> Figures:
    """The median over several starts, in a real browser."""
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work as root
        arguments = [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=find_browser(), args=arguments)
        runs = [one_start(browser) for _ in range(RUNS)]
    return {f"{step}_s": statistics.median(run[step] for run in runs) for step in STEPS}
