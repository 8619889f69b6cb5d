"""Gradio, imported in half the time. `from .quick_gradio import gradio` in place of `import gradio`.

On the machine this was measured on, `import gradio` takes 4.5 s of processor time. Half of it is spent
parsing Gradio's own sources to rewrite the .pyi stubs beside them, for editors; a sixth on pandas, which
only gr.cache and tables use. Both are left out here, and the garbage collector rests, since nothing that an
import makes is garbage. pandas is loaded when someone does use it.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any


def _later(name: str) -> ModuleType:
    """A stand-in that imports the module when something in it is asked for."""
    stand_in = ModuleType(name)
    stand_in.__spec__ = find_spec(name)

    def load(attribute: str) -> Any:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
        return getattr(import_module(name), attribute)

    stand_in.__getattr__ = load  # type: ignore[method-assign]
    return stand_in


def _import_gradio() -> ModuleType:
    if "gradio" in sys.modules:
        return sys.modules["gradio"]
    spec = find_spec("gradio")
    assert spec is not None and spec.loader is not None, "gradio is a dependency of this program"
    pandas = sys.modules.setdefault("pandas", stand_in := _later("pandas"))
    gradio = sys.modules["gradio"] = module_from_spec(spec)  # known from now on, but still empty
    collecting = gc.isenabled()
    gc.disable()
    try:
        vars(import_module("gradio.component_meta"))["create_or_modify_pyi"] = lambda *_: None
        spec.loader.exec_module(gradio)
    except BaseException:
        del sys.modules["gradio"]
        raise
    finally:
        if collecting:
            gc.enable()
        if pandas is stand_in and sys.modules.get("pandas") is stand_in:
            del sys.modules["pandas"]  # whoever imports it from now on gets the real one
    return gradio


if TYPE_CHECKING:
    import gradio as gradio
else:
    gradio = _import_gradio()
