"""The sizes of a model's tensors, looked at as they will be loaded, before any is read: a file that does not
fit its own description costs nothing then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..checkpoints import Checkpoint
from ..formats import check_vector, check_weight
from .config import ModelConfig
from .loader import Loader


def check_shapes(checkpoint: Checkpoint, config: ModelConfig) -> None:
    """Raises BadCheckpoint for a tensor of another size than the model needs, or a vector that is missing;
    UnsupportedModel for numbers of a kind that is not served.
    """
    walk = _Walk(checkpoint, config)
    walk.make_ropes(1)
    walk.top("embedding")
    if not config.tied_head:
        walk.top("head")
    walk.per_layer()
    walk.norm(config.names.top("norm"), config.hidden_size)
    for i in range(config.num_layers):
        walk.layer(i)


class _NoOps:
    """Packs nothing."""

    device = torch.device("cpu")

    def pack(self, *given: Any, gated: bool = False) -> None: ...


class _Walk(Loader):
    """A loader that asks for everything and takes nothing."""

    def __init__(self, checkpoint: Checkpoint, config: ModelConfig) -> None:
        super().__init__(checkpoint, config, _NoOps(), "none", None)  # type: ignore[arg-type]

    def matrix(
        self,
        name: str,
        shape: tuple[int, int],
        rows: np.ndarray | None = None,
        expert: int | None = None,
        is_layers: bool = True,
    ) -> Any:
        check_weight(self.checkpoint, name, shape, rows, expert)

    def expert_weight(self, i: int, part: str, shape: tuple[int, int], expert: int) -> Any:
        if self.config.names.joined != "turns":  # else they lie otherwise
            self.weight(i, part, shape, self.turns(part, shape[0]), expert)

    def floats(
        self, name: str, size: int, rows: np.ndarray | None = None, expert: int | None = None
    ) -> Tensor:
        check_vector(self.checkpoint, name, size, rows, expert)
        return torch.zeros(size)
