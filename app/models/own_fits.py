"""How the person's own files would do here: what is inside one is read once, what fits is decided anew.

A file that can't be read has no badge; why it can't be used is said when it is brought in, or loaded.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from engine import EngineConfig, EngineError, ModelShape

from .fits import Machine, VariantFit, fit_shape
from .model_store import bytes_in
from .own_models import OwnModel

FORMAT = "GGUF Q8_0"  # of files of any kind: what they take of memory is known


class OwnFits:
    """Remembers what each file holds, for as long as it is not changed."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, int, bool], ModelShape | None] = {}

    def look(self, entry: OwnModel, machine: Machine, config: EngineConfig) -> tuple[int, VariantFit | None]:
        """The context that it was made for, and how it would do; 0 and None where that can't be known."""
        path, device = Path(entry.path), machine.device()
        shape = self._shape(path, entry.name or entry.id, device.kind != "cpu")
        if shape is None:
            return 0, None
        size = bytes_in(path, linked=True)
        device = machine.device_for(True) if shape.borrowed else device
        fit = fit_shape(shape, (FORMAT, size), device, machine.speed(), config)
        return shape.context_length, fit

    def _shape(self, path: Path, name: str, on_card: bool) -> ModelShape | None:
        from engine import shape_of

        try:
            key = str(path), path.stat().st_mtime_ns, on_card
        except OSError:
            return None
        if key not in self._shapes:
            self._shapes[key] = None
            with contextlib.suppress(EngineError, OSError):
                self._shapes[key] = shape_of(path, name, on_card)
        return self._shapes[key]
