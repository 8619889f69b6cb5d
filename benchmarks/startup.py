"""How long a person waits for the page: python benchmarks/startup.py [--runs N] [--port N]

Measures the second start (run it once before: the first one compiles). From the start of the process to the
line "Octavo is ready", to the first byte of the page, to a composer one can type into in Chromium, to a model
that answers. A table for people, one JSON line for scripts.
The goals: first byte 3.5 s, usable 1.5 s later, on two cores.
"""

from __future__ import annotations

import argparse
import json
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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
STEPS = ("ready", "first_byte", "usable", "model")


def measure(browser: Browser, port: int) -> dict[str, float]:
    """One start, to its end; seconds since the process was started."""
    command = [sys.executable, "-m", "ui", "run", "--no-browser", "--port", str(port)]
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        link = (
            next(line for line in process.stdout if line.startswith("Octavo is ready"))
            .split(": ", 1)[1]
            .strip()
        )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--port", type=int, default=8650)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        from installer.browser import find_browser

        sandbox = (
            [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
        )  # Chromium's own does not work as root
        browser = playwright.chromium.launch(executable_path=find_browser(), args=sandbox)
        runs = [measure(browser, options.port) for _ in range(options.runs)]
    result = {}
    print("seconds since the process was started")
    for step in STEPS:
        values = sorted(run[step] for run in runs)
        result[step] = round(statistics.median(values), 2)
        print(f"  {step:<12} median {result[step]:5.2f}   best {values[0]:5.2f}   worst {values[-1]:5.2f}")
    print(json.dumps({"benchmark": "startup", "runs": options.runs, "cores": os.cpu_count(), **result}))


if __name__ == "__main__":
    main()
