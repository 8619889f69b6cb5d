"""The command `octavo`. `octavo run`, or no word at all, opens the chat page; every other word goes to the
app and works without Gradio.

Start-up in the order of what a person waits for: the home folder and its lock, the port, Gradio, the page,
the browser; the model is loaded when the page can be used, in a thread of its own.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from types import FrameType
from typing import TYPE_CHECKING, Any

import app
from app import AlreadyRunning, Home, Keys

if TYPE_CHECKING:
    from app import Services

RESTART = 75  # the exit code that asks whoever started this process to start it again
QUICK_S = 2.0  # a wish to restart so soon after the start comes from a fault that a restart does not mend
# importing torch stops all other threads for half a second, in the middle of the page's coming up if it is
# not made to wait
PAGE_FIRST_S, PAINT_S = 2.5, 0.3
LINK_S = 60.0  # how long a link is good
ELSEWHERE = ("-h", "--help", "--version")  # options that are about all words


def main() -> int:
    """The installed command. It has no parent that would start it again, so it does that itself."""
    began = time.monotonic()
    code = command(sys.argv[1:])
    if code != RESTART or time.monotonic() - began < QUICK_S:
        return code
    return app.start_anew()


def command(words: list[str]) -> int:
    """Run one command; its exit code."""
    word = words[0] if words else "run"
    if word != "run" and (word in ELSEWHERE or not word.startswith("-")):
        return app.main(words)
    return app.guarded(lambda: run(words[1:] if word == "run" else words))


def run(argv: Sequence[str]) -> int:
    """Open the chat page and serve it until Ctrl-C, a polite kill or a wish to restart. Raises AppError."""
    parser = argparse.ArgumentParser("octavo run", description="Open the chat page.")
    parser.add_argument(
        "--port", type=int, metavar="N", help="where the page is served, on this machine only"
    )
    parser.add_argument(
        "--model", metavar="ID", help="an id from `octavo models`, or a GGUF file's or folder's path"
    )
    place: dict[str, Any] = {"dest": "where", "action": "store_const", "default": "browser"}
    parser.add_argument("--window", const="window", help="open the page in a window of its own", **place)
    parser.add_argument("--no-browser", const="", help="print the page's link, open nothing", **place)
    options = parser.parse_args(argv)
    home = Home.find()
    app.prepare_process(home)
    settings = app.load_settings(home, port=options.port, model=options.model)
    try:
        services = app.build(settings)
    except AlreadyRunning:
        return _show_running(home, options)
    with closing(services):
        app.listen(settings.port).close()  # a port in use is said before Gradio is imported
        return _serve(services, options.where)


def _show_running(home: Home, options: argparse.Namespace) -> int:
    """Another process has this home folder: open its page, if it is the one that is wanted."""
    there = app.running(home)
    there.check_wishes(home, options.port, options.model)
    print(f"Octavo is already running at http://127.0.0.1:{there.port}. {there.fault}".rstrip())
    words = "Its page" if there.fault else "Octavo is ready"
    _present(home, Keys(home).link(there.port), words, options.where)
    return 0


def _present(home: Home, link: str, words: str, where: str) -> None:
    print(f"{words}: {link}", flush=True)
    if where:
        app.open_page(home, link, where == "window")
        forget = threading.Timer(LINK_S, app.forget_page, [home])  # for when no browser came
        forget.daemon = True
        forget.start()


def _serve(services: Services, where: str) -> int:
    """The page's whole life; the exit code."""
    from .pages import build
    from .shell import serve

    end = _End(lambda: services.instance.asked_to_end, lambda: services.runtime.is_lost)
    settings = services.settings
    blocks, page = build(services, restart=end.restart)
    try:
        serve(blocks, settings.port, services.guard.wrap, app.all_routes(services))
    except OSError:
        app.listen(settings.port).close()  # it says so if another program has taken the port meanwhile
        raise
    try:
        services.instance.announce(settings.port)
        _present(settings.home, services.keys.link(settings.port), "Octavo is ready", where)
        threading.Thread(target=_load, args=(services, page.was_shown, end), daemon=True).start()
        return end.wait()
    finally:
        blocks.close(verbose=False)
        app.forget_page(settings.home)


def _load(services: Services, was_shown: threading.Event, end: _End) -> None:
    """Load the model once the page stands on the screen, or nobody seems to look at it."""
    if was_shown.wait(PAGE_FIRST_S):
        time.sleep(PAINT_S)
    if not end.is_asked:
        services.runtime.start()
    status = services.runtime.wait()
    if status.state in ("missing", "failed") and not end.is_asked:
        print(status.message, file=sys.stderr)  # the page shows it too


class _End:
    """Whether the program should end, and with which code. The main thread waits; any thread may ask."""

    def __init__(
        self, wished: Callable[[], bool] = lambda: False, is_lost: Callable[[], bool] = lambda: False
    ) -> None:
        self._wished, self._is_lost = wished, is_lost  # by another process; the device
        self._asked, self._code = threading.Event(), 0
        signal.signal(signal.SIGTERM, self._signalled)
        signal.signal(signal.SIGINT, self._signalled)

    def restart(self) -> None:
        """End, to be started again."""
        self._code = RESTART
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Whether it comes now."""
        return self._asked.is_set() or self._wished()

    def wait(self) -> int:
        """Sleep until then; the exit code."""
        while not self._asked.wait(0.5) and not self._wished():  # Windows delivers Ctrl-C only between waits
            if self._is_lost():
                self.restart()
        return self._code

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self._asked.set()


if __name__ == "__main__":
    sys.exit(command(sys.argv[1:]))
