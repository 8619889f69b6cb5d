"""The way in: a name and a shape, out comes a weight for the kernels, or a vector. One tensor at a time.

Whatever is missing, of another shape or damaged ends in a BadCheckpoint, what is sound but not served in an
UnsupportedModel; both name the tensor or the numbers.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernels import Weight

from ..checkpoints import Checkpoint, TensorInfo
from ..errors import BadCheckpoint
from . import gguf, huggingface
from .numbers import TORCH_TYPES, finite, sound
from .stored import FLOATS, Stored, find


def to_weight(
    checkpoint: Checkpoint,
    name: str,
    shape: tuple[int, int],
    rows: np.ndarray | None = None,
    expert: int | None = None,
    piece: tuple[int, int] | None = None,
) -> Weight:
    """The matrix [N, K] of that name, which is without ".weight". `rows`: which of the stored rows, in order;
    None: all. `expert`: which of a stack of matrices. `piece`: from which of its rows to which,
    where it can be cut.
    """
    stored = Stored(checkpoint, name, shape, rows, expert, piece)
    if checkpoint.source == "hf":
        return huggingface.to_matrix(stored)
    info, raw = stored.raw(".weight", (), (stored.num_rows, shape[1]))
    picked = stored.picked(raw)
    return gguf.to_matrix(picked, info.type, (len(picked), shape[1]))


def check_weight(
    checkpoint: Checkpoint,
    name: str,
    shape: tuple[int, int],
    rows: np.ndarray | None = None,
    expert: int | None = None,
) -> None:
    """Whether a plain matrix has the sizes that to_weight will want; what a quantized one is made of, is seen
    when it is read.
    """
    stored = Stored(checkpoint, name, shape, rows, expert)
    if stored.has(".weight"):
        stored.check(".weight", (), (stored.num_rows, shape[1]))


def can_be_cut(checkpoint: Checkpoint, name: str) -> bool:
    """Whether some rows of a matrix can be had without reading all: they lie one after another, with all that
    belongs to them.
    """
    info = checkpoint.tensors.get(f"{name}.weight") or checkpoint.tensors.get(name)
    return checkpoint.source == "gguf" or (info is not None and info.type in FLOATS)


def to_vector(
    checkpoint: Checkpoint,
    name: str,
    size: int,
    rows: np.ndarray | None = None,
    expert: int | None = None,
) -> Tensor:
    """A norm's gain or a bias as float32, by its full name. `rows`, `expert`: see to_weight."""
    info = check_vector(checkpoint, name, size, rows, expert)
    raw = checkpoint.raw(name) if expert is None else checkpoint.raw(name)[expert]
    values = finite(torch.from_numpy(raw.copy()).view(TORCH_TYPES[info.type]).float(), f"values of {name}")
    return values if rows is None else values[torch.from_numpy(rows)]


def check_vector(
    checkpoint: Checkpoint, name: str, size: int, rows: np.ndarray | None = None, expert: int | None = None
) -> TensorInfo:
    """The same without its values: it must be there, of floats, and long enough."""
    info = find(checkpoint, name, FLOATS)
    needed = size if rows is None else int(rows.max()) + 1
    *stack, length = info.shape
    fits = length == size if rows is None else length >= needed
    which = () if expert is None else (expert,)
    if not fits or len(stack) != len(which) or any(one >= count for one, count in zip(which, stack)):
        raise BadCheckpoint(
            f"{checkpoint.path.name}: tensor {name} is {list(info.shape)}, expected [{needed}]."
        )
    return info


def to_tensor(checkpoint: Checkpoint, name: str) -> Tensor:
    """Floats of any shape, by their full name, in the type that they are stored in."""
    info = find(checkpoint, name, FLOATS)
    values = torch.from_numpy(checkpoint.raw(name).copy()).view(TORCH_TYPES[info.type])
    return sound(values, f"values of {name}").reshape(info.shape)
