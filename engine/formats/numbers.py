"""Numbers as checkpoints store them: floats by their names, tables of four-bit values, scales that are sound.

Looking at all scales and vectors is cheap, and one bad one spoils every answer; of whole matrices the sum is
looked at first, which no infinity and no NaN survives.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..errors import BadCheckpoint

TORCH_TYPES = {
    **{"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F8_E4M3": torch.float8_e4m3fn},
    **{"I64": torch.int64, "I32": torch.int32, "I8": torch.int8, "U8": torch.uint8},
}
HALF_MAX = 65504.0
PIECE = 1 << 17  # values


def halves_of_powers(exponents: Tensor) -> Tensor:
    """E8M0, uint8 with 127 added (OCP Microscaling Formats 1.0): half of each power of two, as float32."""
    return (2.0 ** (exponents.double() - 128)).float()


def floats_of(raw: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Bytes as sound numbers, copied: a file does not promise alignment, and it will be closed."""
    return sound(torch.from_numpy(raw.copy()).view(dtype), "weights of a matrix")


def sound(values: Tensor, what: str) -> Tensor:
    """The same values, which are many, or BadCheckpoint. Looks at some at a time."""
    if all(piece.float().sum().isfinite() for piece in values.view(-1).split(PIECE)):
        return values
    return finite(values.float(), what).to(values.dtype)


def finite(values: Tensor, what: str = "scales of a matrix") -> Tensor:
    """The same values, or BadCheckpoint."""
    if broken := values.numel() - int(values.isfinite().count_nonzero()):
        raise BadCheckpoint(
            f"The model is damaged: {broken} of {values.numel()} {what} are no finite numbers."
        )
    return values


def as_stored(scale: Tensor) -> Tensor:
    """Scales as formats have them: float16 where that is exact, else float32. None may be beyond float16."""
    largest = float(finite(scale.float()).abs().amax()) if scale.numel() else 0.0
    if largest > HALF_MAX:
        raise BadCheckpoint(f"The model is damaged: a scale is {largest:g}; none is above {HALF_MAX:g}.")
    half = scale.half()
    return half if torch.equal(half.float(), scale.float()) else scale.float()
