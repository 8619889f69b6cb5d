"""What a browser sees that has not entered: one calm page which says how to get in, in the person's language.

It stands alone: whoever may not enter gets none of the program's files. Knows no guard and no keys.
"""

from __future__ import annotations

import html
from string import Template

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse

from .words import words

COMMAND = "python3 -m installer run"
PAGE = Template(
    """<!doctype html>
<html lang="$language">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Octavo</title>
<style>
  :root { color-scheme: light dark; --paper: #fbf9f5; --ink: #25231f; --soft: #6a655b; --wash: #efebe1 }
  @media (prefers-color-scheme: dark) {
    :root { --paper: #1c1b19; --ink: #ebe7de; --soft: #a8a194; --wash: #2b2926 }
  }
  body {
    display: grid; place-content: center; min-height: 100dvh; box-sizing: border-box; margin: 0;
    padding: 24px; background: var(--paper); color: var(--ink); font: 17px/1.6 system-ui, sans-serif;
  }
  main { max-width: 30rem }
  h1 { margin: 0 0 12px; font: 400 32px/1.25 Georgia, "Songti SC", serif }
  p { margin: 0 0 12px; color: var(--soft) }
  code {
    display: block; padding: 12px 16px; border-radius: 10px; background: var(--wash); color: var(--ink);
    font: 15px ui-monospace, Consolas, monospace; overflow-x: auto; user-select: all;
  }
</style>
<main><h1>$locked</h1><p>$locked_text</p><p>$locked_how</p><code>$command</code></main>
</html>
"""
)


def locked(headers: Headers) -> HTMLResponse:
    """The page, for a browser that sent these headers."""
    language = "zh" if headers.get("accept-language", "").lower().startswith("zh") else "en"
    texts = {name: html.escape(text) for name, text in words()[language].items()}
    page = PAGE.substitute(texts, language="zh-CN" if language == "zh" else "en", command=COMMAND)
    return HTMLResponse(page, 401)
