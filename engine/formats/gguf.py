"""GGUF's tensor types to the kernels' formats: blocks are taken apart, no value is rounded.

Here are floats and the types with blocks of 32 values; gguf_k.py has those with 256.
Layouts: https://github.com/ggml-org/llama.cpp, ggml-common.h (blocks), ggml-quants.c (meaning).
Also undone here: the order of rows that llama.cpp gives to query and key matrices of some architectures.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from kernels import Dense, Int4, Int4T, Int5, Int8, Weight

from ..errors import UnsupportedModel
from . import gguf_k
from .blocks import Blocks, halves, in_rows
from .numbers import TORCH_TYPES, as_stored, finite, floats_of, halves_of_powers
from .stored import FLOATS


def to_matrix(raw: np.ndarray, type_name: str, shape: tuple[int, int]) -> Weight:
    """A matrix [N, K] from its rows' bytes, uint8 [N, bytes per row]. Other types raise UnsupportedModel."""
    if type_name not in MATRICES:
        raise UnsupportedModel(
            f"Tensors of type {type_name} are not served; these are: {', '.join(MATRICES)}."
        )
    block_size, convert = MATRICES[type_name]
    weight = convert(np.ascontiguousarray(raw).reshape(shape[0], shape[1] // block_size, -1))
    assert weight.shape == shape, f"{type_name} rows of {raw.shape} bytes do not make {shape}"
    return weight


def rope_rows(heads: int, head_dim: int) -> np.ndarray:
    """Which stored row stands where, so that rope finds halves: [heads * head_dim] indices.

    llama.cpp stores rotated pairs as neighbours, rows 2i and 2i + 1 of a head; Rope wants i and i + D / 2.
    """
    return np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2).swapaxes(1, 2).ravel()


def _dense(dtype: torch.dtype) -> Callable[[Blocks], Weight]:
    return lambda blocks: Dense(floats_of(blocks.reshape(len(blocks), -1), dtype))


def _q4_0(blocks: Blocks) -> Weight:
    """d, 16 bytes of nibbles as Int4 has them: d * (q - 8). Times -8 is exact, if it is finite."""
    scale = halves(blocks, 0)
    return Int4(in_rows(blocks[..., 2:].copy(), len(blocks)), scale, finite(scale * -8))


def _q4_1(blocks: Blocks) -> Weight:
    """d, m, 16 bytes of nibbles as Int4 has them: d * q + m."""
    return Int4(in_rows(blocks[..., 4:].copy(), len(blocks)), halves(blocks, 0), halves(blocks, 2))


def _q8_0(blocks: Blocks) -> Weight:
    """d, 32 signed bytes: d * q."""
    return Int8(in_rows(blocks[..., 2:].copy(), len(blocks)).view(torch.int8), halves(blocks, 0))


def _five_bits(blocks: Blocks) -> torch.Tensor:
    """The last 20 bytes: bit i of the first four is value i's high bit, then nibbles as Int4 has them."""
    bits, nibbles = np.unpackbits(blocks[..., -20:-16], -1, bitorder="little"), blocks[..., -16:]
    return in_rows(np.concatenate([nibbles & 15, nibbles >> 4], -1) | bits << 4, len(blocks))


def _q5_0(blocks: Blocks) -> Weight:
    """d, 20 bytes of values: d * (q - 16). Times -16 is exact, if it is finite."""
    scale = halves(blocks, 0)
    return Int5(_five_bits(blocks), scale, finite(scale * -16))


def _q5_1(blocks: Blocks) -> Weight:
    """d, m, 20 bytes of values: d * q + m."""
    return Int5(_five_bits(blocks), halves(blocks, 0), halves(blocks, 2))


def _iq4_nl(blocks: Blocks) -> Weight:
    """d, 16 bytes of nibbles: d * table[q]."""
    return Int4T(in_rows(blocks[..., 2:].copy(), len(blocks)), halves(blocks, 0), "iq4")


def _mxfp4(blocks: Blocks) -> Weight:
    """e, 16 bytes of nibbles: 2^(e - 127) * a half of table[q]."""
    scale = halves_of_powers(torch.from_numpy(blocks[..., 0].copy()))
    return Int4T(in_rows(blocks[..., 1:].copy(), len(blocks)), as_stored(scale), "fp4")


# Type -> (values in a block, what takes it apart).
MATRICES: dict[str, tuple[int, Callable[[Blocks], Weight]]] = {
    **{name: (1, _dense(TORCH_TYPES[name])) for name in FLOATS},
    **{"Q4_0": (32, _q4_0), "Q4_1": (32, _q4_1), "Q5_0": (32, _q5_0), "Q5_1": (32, _q5_1)},
    **{"Q8_0": (32, _q8_0), "IQ4_NL": (32, _iq4_nl), "MXFP4": (32, _mxfp4)},
    **{"Q2_K": (256, gguf_k.q2_k), "Q3_K": (256, gguf_k.q3_k), "Q4_K": (256, gguf_k.q4_k)},
    **{"Q5_K": (256, gguf_k.q5_k), "Q6_K": (256, gguf_k.q6_k), "IQ4_XS": (256, gguf_k.iq4_xs)},
}
