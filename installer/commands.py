"""The installer's words.

`run` and `test` set up what they need, then hand over to the program or to pytest and return that exit code.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from .browser import ensure_browser
from .console import say
from .environment import prepare
from .errors import SetupError
from .install import install
from .launch import keep_running, run_once
from .starter import ensure_compiled, ensure_starter
from .uninstall import uninstall

ROOT = Path(__file__).resolve().parent.parent
INTERRUPTED = 130
ALONE = ("-s", "--pdb", "--collect-only", "--co")  # of pytest's options: these want one process
HELP = """python3 -m installer WORD [OPTIONS]

  run    set up what is missing, start Octavo and open the browser
         --port N, --no-browser and other options go to Octavo
  test   set up what is missing, also for the tests, and run them
         options go to pytest, for example: test -k scheduler
  install     put Octavo under your own folder, into the menu and in PATH, or upgrade it; keeps data
  uninstall   remove that; --data keep or --data delete, else it asks about your chats
"""


def main(arguments: list[str]) -> int:
    """The exit code of a word and its options."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    # A polite kill ends like Ctrl-C does: what is open is closed, what runs below is ended.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    word = arguments[0] if arguments else "help"
    try:
        asks = word != "test" and not {"--help", "-h"}.isdisjoint(arguments)  # pytest has a help of its own
        if asks or word == "help":
            say(HELP)
            return 0
        if word not in WORDS:
            print(f"Unknown command {word!r}. Commands: {', '.join(WORDS)}.", file=sys.stderr)
            return 2
        return WORDS[word](arguments[1:])
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start goes on from here.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `| head`: nobody listens any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def run(options: list[str]) -> int:
    """Start the program; without a starter model all the same, its page says what is missing."""
    env = prepare(ROOT)
    try:
        ensure_starter(ROOT, env.python)
    except SetupError as error:
        say(f"  {error}\n  Octavo starts without it.")
    else:
        ensure_compiled(ROOT, env.python)
    return keep_running([str(env.python), "-m", "installer.child", "run", *options], ROOT)


def test(options: list[str]) -> int:
    """Run the tests, on two processes where there are two cores and no option speaks against it."""
    env = prepare(ROOT, ("test",))
    ensure_starter(ROOT, env.python)
    ensure_browser()
    alone = any(option in ALONE or option.startswith("-n") for option in options)
    split = ["-n", "2", "--dist", "loadfile"] if not alone and (os.cpu_count() or 1) > 1 else []
    return run_once([str(env.python), "-m", "pytest", *split, *options], ROOT)


WORDS: dict[str, Callable[[list[str]], int]] = {
    "run": run,
    "test": test,
    "install": lambda options: install(ROOT, options),
    "uninstall": uninstall,
}
