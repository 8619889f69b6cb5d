"""The page that says why Octavo stays off, for a person without a terminal.

It is `trouble.html` in the data folder, shown in the browser; nothing of Octavo needs to work for it.
"""

from __future__ import annotations

import html
import os
import webbrowser
from pathlib import Path

MOST_LINES = 20
PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Octavo</title>
<style>
  :root {{ color-scheme: light dark; font: 1rem/1.6 system-ui, sans-serif }}
  body {{ max-width: 42rem; margin: 4rem auto; padding: 0 1rem }}
  pre {{ white-space: pre-wrap; overflow-wrap: anywhere; padding: 1rem; border: 1px solid }}
</style>
<h1>Octavo has stopped</h1>
<p>{happened}</p>
<pre>{last}</pre>
<p>Your chats are kept in <code>{home}</code>. Start Octavo again from the menu. If that does not help, type
<code>octavo doctor</code> in a terminal, and look into <code>octavo.log</code> and <code>window.log</code>
in that folder.</p>
"""


def show_trouble(home: Path, happened: str, log: str) -> None:
    """Say what happened and the last lines of what the program wrote."""
    last = "\n".join(log.splitlines()[-MOST_LINES:]) or "It said nothing."
    says = {"happened": happened, "last": last, "home": str(home)}
    text = PAGE.format(**{name: html.escape(value) for name, value in says.items()})
    page = home / "trouble.html"
    page.unlink(missing_ok=True)
    with open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    webbrowser.open(page.as_uri())
