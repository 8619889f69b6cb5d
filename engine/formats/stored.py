"""A matrix as a folder checkpoint stores it: tensors of one name and several endings, checked when read.

Endings: ".weight" of plain matrices, ".qweight" ".scales" ... of quantized ones. What they mean is not known
here. `rows` says which stored rows the matrix is made of, `piece` which of these are wanted now, `expert`
which entry of a stack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..checkpoints import Checkpoint, TensorInfo
from ..errors import BadCheckpoint, UnsupportedModel
from .numbers import TORCH_TYPES, sound

FLOATS = ("F32", "F16", "BF16")


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a matrix [N, K] comes from."""

    checkpoint: Checkpoint
    name: str
    shape: tuple[int, int]
    rows: np.ndarray | None = None
    expert: int | None = None
    piece: tuple[int, int] | None = None  # from one of them to before another; None: all

    @property
    def quantization(self) -> Mapping[str, Any]:
        """What the checkpoint says of its quantization."""
        return quantization_of(self.checkpoint.metadata)

    def has(self, ending: str) -> bool:
        """Whether there is such a tensor."""
        return self.name + ending in self.checkpoint.tensors

    def raw(
        self, ending: str, types: tuple[str, ...], shape: tuple[int | None, ...]
    ) -> tuple[TensorInfo, np.ndarray]:
        """A tensor's bytes in the file; see `check`."""
        info = self.check(ending, types, shape)
        raw = self.checkpoint.raw(info.name)
        return info, raw if self.expert is None else raw[self.expert]

    def check(self, ending: str, types: tuple[str, ...], shape: tuple[int | None, ...]) -> TensorInfo:
        """A tensor without its bytes. It must have one of these types (none: any) and this shape (None: any
        size), which is that of one expert.
        """
        info = find(self.checkpoint, self.name + ending, types)
        stack = () if self.expert is None else (None,)
        wanted = (*stack, *shape)
        fits = len(wanted) == len(info.shape) and all(w in (None, n) for w, n in zip(wanted, info.shape))
        if not fits or (self.expert is not None and self.expert >= info.shape[0]):
            expected = ", ".join("any" if size is None else str(size) for size in wanted)
            which = "" if self.expert is None else f" for its matrix {self.expert}"
            raise BadCheckpoint(
                f"{self.checkpoint.path.name}: tensor {info.name} is {list(info.shape)}, expected "
                f"[{expected}]{which}."
            )
        return info

    def tensor(self, ending: str, types: tuple[str, ...], shape: tuple[int | None, ...]) -> Tensor:
        """The same as a copy, of the type it has."""
        info, raw = self.raw(ending, types, shape)
        values = torch.from_numpy(raw.copy()).view(TORCH_TYPES[info.type])
        return values.reshape(info.shape if self.expert is None else info.shape[1:])

    def floats(self, ending: str) -> Tensor:
        """The wanted rows of a matrix of floats, of which no others are copied."""
        info, raw = self.raw(ending, FLOATS, (self.num_rows, self.shape[1]))
        values = torch.from_numpy(self.picked(raw).copy()).view(TORCH_TYPES[info.type])
        return sound(values, f"weights of {self.name}")

    def picked(self, values: Any) -> Any:
        """The wanted ones of all stored rows [rows, ...], a tensor or an array; tensors become contiguous."""
        if self.rows is not None:
            if int(self.rows.max()) >= len(values):
                raise BadCheckpoint(
                    f"{self.checkpoint.path.name}: {self.name} has {len(values)} rows, "
                    f"{int(self.rows.max()) + 1} are needed."
                )
            values = values[self.rows if self.piece is None else self.rows[slice(*self.piece)]]
        elif self.piece is not None:
            values = values[slice(*self.piece)]
        return values.contiguous() if isinstance(values, Tensor) else values

    @property
    def num_rows(self) -> int | None:
        """How many rows must be stored; None: as many as there are, some are picked."""
        return self.shape[0] if self.rows is None else None

    def refuse(self, why: str) -> UnsupportedModel:
        """What to raise for something sound that is not served."""
        return UnsupportedModel(f"{self.checkpoint.path.name}: {self.name} {why}.")


def quantization_of(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a checkpoint says of its quantization; empty: nothing."""
    said = metadata.get("quantization_config")
    if said is not None and not isinstance(said, dict):
        raise BadCheckpoint(f"The model is damaged: its quantization_config is {said!r:.40}, not a table.")
    return said or {}


def find(checkpoint: Checkpoint, name: str, types: tuple[str, ...] = ()) -> TensorInfo:
    """A tensor that must be there, of one of these types."""
    info = checkpoint.tensors.get(name)
    if info is None:
        raise BadCheckpoint(f"{checkpoint.path.name} has no tensor {name}; the file is incomplete.")
    if types and info.type not in types:
        raise UnsupportedModel(
            f"{checkpoint.path.name}: {name} has type {info.type}; these are served: {', '.join(types)}."
        )
    return info
