"""Gradio's import: what it leaves out, and that nothing else of Python notices."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROBE = """
import importlib.util, json, sys
if {first!r}: __import__({first!r})
import ui, app, ui.words
before = [name for name in ("gradio", "pandas", "torch") if name in sys.modules]
app.ChatService
import ui.chat_page
from ui.quick_gradio import gradio
import gradio.component_meta
after = [name for name in ("pandas.core", "torch", "transformers", "numba") if name in sys.modules]
cached = gradio.caching.pd
print(json.dumps({{
    "before": before, "after": after, "name": gradio.__name__, "blocks": gradio.Blocks.__name__,
    "stand_in": "pandas" in sys.modules and {first!r} != "pandas",
    "known": importlib.util.find_spec("pandas") is not None,
    "frame": len(cached.DataFrame([1, 2])), "loaded": "pandas.core" in sys.modules,
}}))
"""


def probe(first: str = "") -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(first=first)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_gradio_comes_without_what_the_page_never_uses() -> None:
    spec = find_spec("gradio")
    assert spec is not None and spec.submodule_search_locations is not None
    stubs = sorted(Path(spec.submodule_search_locations[0]).rglob("*.pyi"))
    times = [stub.stat().st_mtime_ns for stub in stubs]
    found = probe()
    assert found["before"] == [] and found["after"] == []
    assert found["name"] == "gradio" and found["blocks"] == "Blocks"
    assert not found["stand_in"] and found["known"]
    assert found["frame"] == 2 and found["loaded"]  # pandas comes when it is asked for
    assert [stub.stat().st_mtime_ns for stub in stubs] == times


def test_a_pandas_that_is_there_already_stays() -> None:
    assert probe("pandas")["frame"] == 2
