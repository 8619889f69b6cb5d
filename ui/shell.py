"""What all pages stand in: the look, the lines that run before Gradio's own, and the server behind the
guard.

Gradio serves itself, through launch(); its app is ours by one method, so that the guard is the outermost
layer. Gradio's CORS layer, which answers preflight requests by itself, would otherwise stand outside of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from .acts import Act, served
from .locked import locked
from .page_head import PageHead
from .quick_gradio import gradio as gr
from .words import words
from .words.sentences import sentences

ASSETS = Path(__file__).with_name("assets")
STYLES = (
    "page/paper", "rail/rail", "talk/head", "talk/talk", "desk/desk", "desk/files", "page/sheet",
    "rail/shelf", "page/leaf", "models/models", "memory/memory", "settings/settings",
)  # fmt: skip
EARLY = (
    "page/early", "page/said", "page/names", "page/pages", "page/keys", "page/ask", "talk/rewrite",
    "talk/thoughts", "talk/speech", "talk/compare", "talk/foot", "talk/line", "talk/talk", "desk/files",
    "page/sheet", "page/toast", "rail/search", "rail/chat_settings", "rail/import",
)  # fmt: skip
# the first link to a manifest counts, and this one leads nowhere: a browser would fetch Gradio's without the
# cookie, and the guard refuse it
NO_MANIFEST = '<link rel="manifest">'
NO_SCRIPTS = "p { max-width: 34rem; margin: 2rem auto; padding: 0 1rem; font: 17px/1.6 system-ui }"


def asset(name: str) -> str:
    """The text of a file in assets/."""
    return (ASSETS / name).read_text("utf-8")


def part(name: str, *scripts: str, **more: Any) -> gr.HTML:
    """A part of the page that scripts draw from plain data: no text from outside is ever parsed as HTML."""
    return gr.HTML(
        html_template=f'<div class="{name}"></div>',
        js_on_load="\n".join(asset(f"{script}.js") for script in scripts),
        apply_default_css=False,
        elem_id=f"{name}-part",
        **more,
    )


def leaf(name: str, acts: Mapping[str, Act], page: Any) -> gr.HTML:
    """A page that is one part: <name>/<name>.js draws it into <div class="<name>">, and asks `page`."""
    return part(name, f"{name}/{name}", server_functions=served(acts, page), elem_classes=["leaf"])


def first_lines() -> str:
    """What stands right after <head> of every page."""
    script = "\n".join([f"window.octavoWords = {_json(words())};", *(asset(f"{name}.js") for name in EARLY)])
    said = f'<script type="application/json" id="octavo-sentences">{_json(sentences())}</script>'
    style = "\n".join(asset(f"{name}.css") for name in STYLES)
    scheme = '<meta name="color-scheme" content="light dark">'
    alone = "".join(f"<p>{table['no_scripts']}</p>" for table in words().values())
    without = f"<noscript><style>{NO_SCRIPTS}</style>{alone}</noscript>"
    return f"{scheme}{NO_MANIFEST}<style>{style}</style>{said}<script>{script}</script>{without}"


def _json(table: dict[str, Any]) -> str:
    """For the inside of a <script>."""
    return json.dumps(table, ensure_ascii=False).replace("<", "\\u003c")


class GuardedApp(gr.routes.App):
    """Gradio's app with a layer of ours around all of it."""

    def __init__(self, guard: Callable[..., ASGIApp], **options: Any) -> None:
        self._guard = guard
        super().__init__(default_response_class=gr.routes.ORJSONResponse, **options)

    def build_middleware_stack(self) -> ASGIApp:
        return self._guard(_Uncompressed(super().build_middleware_stack()), locked)


class _Uncompressed:
    """Lets no layer within compress: over loopback that costs more time than it saves."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await self.app(scope, receive, send)


def serve(
    blocks: gr.Blocks, port: int, guard: Callable[..., ASGIApp], routes: Sequence[BaseRoute] = ()
) -> None:
    """Serve the page at 127.0.0.1:port in a thread; returns when it answers. Raises OSError if it can't."""
    app = GuardedApp(
        guard,
        routes=list(routes),
        middleware=[Middleware(PageHead, head=first_lines())],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    _calm(blocks._queue)
    blocks.launch(
        _app=app,
        server_name="127.0.0.1",
        server_port=port,
        prevent_thread_lock=True,
        quiet=True,
        theme=gr.themes.Base(font=["system-ui"], font_mono=["ui-monospace"]),
        favicon_path=ASSETS / "mark.svg",
        footer_links=[],
        run_history=False,
        enable_monitoring=False,
        ssr_mode=False,
        mcp_server=False,
        share=False,
        pwa=False,
        max_file_size="1kb",  # files come another way: app/documents/uploads.py
    )
    server = logging.getLogger("uvicorn")  # Gradio's; what it warns of belongs in the log (app/faults.py)
    server.handlers.clear()
    server.propagate = True


def _calm(queue: Any) -> None:
    """Take from Gradio's event queue what costs time and shows nowhere."""
    queue.sleep_when_free = 0.02  # it looks for events every 1 ms and for progress every 10 ms, which takes
    queue.progress_update_sleep_when_free = 1.0  # 3% of a core for ever
    queue.compute_analytics_summary = lambda records: {"functions": {}}  # a pandas table after each event
