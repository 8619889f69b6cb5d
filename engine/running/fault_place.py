"""Where in a model numbers stopped being numbers: the step is computed once more, and each op looked at.

Computing a step again changes nothing: the same keys and values go to the same slots. What an op leaves in an
activation is the backend's affair; it shows in the residual stream after the next product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernels import ForwardBatch, KVLayer, Ops

# Where an op's output stands among its arguments after the batch; others leave nothing that can be read.
OUTPUTS = {"embed": 1, "norm_linear": 3, "linear_add": 2, "add": 1, "norm_experts_add": 0, "logits": 3}


def find_fault(forward: Callable[[Ops], None], ops: Ops, token: int, row: int) -> str:
    """The part of the model whose output for a token of the batch, or for a row of logits, was the first
    that was not finite: "layer 3, full attention". "" where it is all sound now.
    """
    watch: Any = _Watch(ops, token, row)
    forward(watch)
    return watch.place


class _Watch:
    """The ops, each looked at when it is done. What a plain product is for, the op after it says."""

    def __init__(self, ops: Ops, token: int, row: int) -> None:
        self._ops, self._token, self._row = ops, token, row
        self._layer, self._doing, self._unnamed, self.place = 0, "", False, ""

    def __getattr__(self, name: str) -> Callable[..., None]:
        op = getattr(self._ops, name)

        def watched(batch: ForwardBatch, *given: Any, **more: Any) -> None:
            op(batch, *given, **more)
            self._follow(name, given)
            if self.place or (name not in OUTPUTS and not self._unnamed):
                return
            if self._unnamed or not self._is_sound(name, given):
                self._unnamed = name == "norm_linear"
                self.place = "" if self._unnamed else self._doing

        return watched

    def _is_sound(self, name: str, given: tuple[Any, ...]) -> bool:
        at = 3 if name == "norm_experts_add" and len(given) > 3 else OUTPUTS[name]
        output = given[at][self._row if name == "logits" else self._token]
        return bool(output.isfinite().all())

    def _follow(self, name: str, given: tuple[Any, ...]) -> None:
        """The name of the part that an op belongs to; the layer begins to count with its attention."""
        if name == "attention":
            self._layer += 1
            layer: KVLayer = given[1]
            self._doing = f"layer {self._layer}, {'windowed' if layer.window else 'full'} attention"
        parts = {
            "embed": "the embedding" if not self._doing else "the per-layer embeddings",
            "rope_write": f"layer {self._layer + 1}, queries, keys and values",
            "norm_gated_linear": f"layer {self._layer}, feed-forward",
            "norm_experts_add": f"layer {self._layer}, experts",
            "gate": f"layer {self._layer}, per-layer embedding",
            "logits": "the output head",
        }
        self._doing = parts.get(name, self._doing)
