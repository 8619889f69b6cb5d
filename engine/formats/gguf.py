"""GGUF's tensor types to the kernels' formats, exactly: blocks are taken apart, no value is rounded.

A type stores a row as blocks, each with its scales beside its values; a format keeps scales and values apart.
Layouts: https://github.com/ggml-org/llama.cpp, ggml-common.h (blocks), ggml-quants.c (meaning).
Also undone here: the order of rows that llama.cpp gives to query and key matrices of some architectures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from kernels import Dense, Int4, Int4K, Int6, Int8, Weight

from ..checkpoints import GgufFile, TensorInfo
from ..errors import BadCheckpoint, UnsupportedModel

Blocks = np.ndarray  # uint8 [rows, blocks per row, bytes per block]


def to_weight(raw: np.ndarray, type_name: str, shape: tuple[int, int]) -> Weight:
    """A matrix [N, K] from its rows' bytes, uint8 [N, bytes per row]. Other types raise UnsupportedModel."""
    if type_name not in _MATRICES:
        raise UnsupportedModel(
            f"Tensors of type {type_name} are not served; these are: {', '.join(_MATRICES)}."
        )
    block_size, convert = _MATRICES[type_name]
    weight = convert(raw.reshape(shape[0], shape[1] // block_size, -1))
    assert weight.shape == shape, f"{type_name} rows of {raw.shape} bytes do not make {shape}"
    return weight


def to_vector(checkpoint: GgufFile, name: str, tensor: TensorInfo) -> Tensor:
    """A norm's gain or a bias as float32."""
    if tensor.type not in _FLOATS:
        known = ", ".join(_FLOATS)
        raise UnsupportedModel(
            f"{checkpoint.path.name}: {name} has type {tensor.type}; these are served: {known}."
        )
    values = _float_values(checkpoint.raw(name), _FLOATS[tensor.type]).float().flatten()
    return _finite(values, f"values of {name}")


def rope_rows(heads: int, head_dim: int) -> np.ndarray:
    """Which stored row stands where, so that rope finds halves: [heads * head_dim] indices.

    llama.cpp stores rotated pairs as neighbours, rows 2i and 2i + 1 of a head; Rope wants i and i + D / 2.
    """
    return np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2).swapaxes(1, 2).ravel()


def _float_values(raw: np.ndarray, dtype: torch.dtype) -> Tensor:
    """Bytes as floats, copied: alignment is not promised in the file, and the file will be closed."""
    return torch.from_numpy(raw.copy()).view(dtype)


def _dense(dtype: torch.dtype) -> Callable[[Blocks], Weight]:
    return lambda blocks: Dense(_float_values(blocks.reshape(len(blocks), -1), dtype))


def _halves(blocks: Blocks, at: int) -> Tensor:
    """The float16 at byte `at` of each block: [rows, blocks]."""
    return _finite(torch.from_numpy(blocks.view(np.float16)[..., at // 2].copy()))


def _finite(values: Tensor, what: str = "scales of a matrix") -> Tensor:
    """Vectors and scales are few: looking at all of them is cheap, and one bad one spoils every answer."""
    if broken := int((~values.isfinite()).sum()):
        raise BadCheckpoint(
            f"The model is damaged: {broken} of {values.numel()} {what} are no finite numbers."
        )
    return values


def _rows(values: np.ndarray, rows: int) -> Tensor:
    """uint8 [rows, all that belongs to a row in one run]."""
    return torch.from_numpy(np.ascontiguousarray(values).view(np.uint8).reshape(rows, -1))


def _q4_0(blocks: Blocks) -> Weight:
    """d, 16 bytes of nibbles as Int4 has them: d * (q - 8). Times -8 is exact, if it is finite."""
    scale = _halves(blocks, 0)
    return Int4(_rows(blocks[..., 2:].copy(), len(blocks)), scale, _finite(scale * -8))


def _q4_1(blocks: Blocks) -> Weight:
    """d, m, 16 bytes of nibbles as Int4 has them: d * q + m."""
    return Int4(_rows(blocks[..., 4:].copy(), len(blocks)), _halves(blocks, 0), _halves(blocks, 2))


def _q8_0(blocks: Blocks) -> Weight:
    """d, 32 signed bytes: d * q."""
    return Int8(_rows(blocks[..., 2:].copy(), len(blocks)).view(torch.int8), _halves(blocks, 0))


# The K types are taken apart in words of many bytes, one column of words at a time, in pieces that fit a
# cache: five times faster than byte by byte. A mask keeps one field of every byte in a word.
PIECE = 2048  # blocks


def _mask(byte: int, dtype: type[np.unsignedinteger]) -> np.unsignedinteger:
    return dtype(int.from_bytes(bytes([byte]) * dtype().nbytes))


def _in_pieces(words: np.ndarray, width: int, fill: Callable[[np.ndarray, np.ndarray], None]) -> np.ndarray:
    """`fill(words, out)` for pieces of [blocks, ...] -> [blocks, width]."""
    out = np.empty((len(words), width), words.dtype)
    for at in range(0, len(words), PIECE):
        fill(words[at : at + PIECE], out[at : at + PIECE])
    return out


def _q4_k(blocks: Blocks) -> Weight:
    """d, dmin, 12 bytes of 6-bit scales and minima, 4 x 32 bytes: their low nibbles, then their high ones."""
    rows = len(blocks)
    packed = _in_pieces(blocks.view(np.uint64).reshape(-1, 18)[:, 2:], 16, _fill_q4_k_nibbles)
    both = _in_pieces(blocks.view(np.uint32).reshape(-1, 36)[:, 1:4], 4, _fill_q4_k_scales)
    scale, minimum = _rows(both[:, :2], rows), _rows(both[:, 2:], rows)
    return Int4K(_rows(packed, rows), scale, minimum, _halves(blocks, 0), _halves(blocks, 2))


def _fill_q4_k_nibbles(words: np.ndarray, out: np.ndarray) -> None:
    """Byte b of a pair of groups holds input b of both; Int4K's, inputs b and b + 16 (2 words on) of one."""
    low = _mask(15, np.uint64)
    for pair, word in itertools.product(range(0, 16, 4), range(2)):
        first, second = words[:, pair + word], words[:, pair + word + 2]
        out[:, pair + word] = first & low | (second & low) << 4
        out[:, pair + word + 2] = first >> 4 & low | second & ~low


def _fill_q4_k_scales(words: np.ndarray, out: np.ndarray) -> None:
    """Scales 0-3, minima 0-3, low halves of both 4-7, whose high bits are the top bits of the first eight."""
    six, four, top = (_mask(byte, np.uint32) for byte in (0x3F, 0x0F, 0x30))
    scales, minima, rest = words.T
    out[:, 0] = scales & six
    out[:, 1] = rest & four | scales >> 2 & top
    out[:, 2] = minima & six
    out[:, 3] = rest >> 4 & four | minima >> 2 & top


def _q6_k(blocks: Blocks) -> Weight:
    """128 bytes of low nibbles, 64 of high bits, 16 signed scales, d: d * scale * (q - 32)."""
    words = np.ascontiguousarray(blocks[..., :192]).view(np.uint64).reshape(-1, 24)
    values, scale = _in_pieces(words, 32, _fill_q6_k), blocks[..., 192:208].copy()
    rows = len(blocks)
    return Int6(_rows(values, rows), _rows(scale, rows).view(torch.int8), _halves(blocks, 208))


def _fill_q6_k(words: np.ndarray, out: np.ndarray) -> None:
    """Each half has four quarters of 4 words: nibbles low, low, high, high; bits 0-1, 2-3, 4-5, 6-7."""
    low, two = _mask(15, np.uint64), _mask(3, np.uint64)
    for half, quarter, word in itertools.product(range(2), range(4), range(4)):
        nibbles = words[:, 8 * half + 4 * (quarter % 2) + word] >> 4 * (quarter // 2) & low
        bits = words[:, 16 + 4 * half + word] >> 2 * quarter & two
        out[:, 16 * half + 4 * quarter + word] = nibbles | bits << 4


_FLOATS = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
# Type -> (values in a block, what takes it apart).
_MATRICES: dict[str, tuple[int, Callable[[Blocks], Weight]]] = {
    **{name: (1, _dense(dtype)) for name, dtype in _FLOATS.items()},
    "Q4_0": (32, _q4_0),
    "Q4_1": (32, _q4_1),
    "Q8_0": (32, _q8_0),
    "Q4_K": (256, _q4_k),
    "Q6_K": (256, _q6_k),
}
