"""GGUF's types with blocks of 256 values, two levels of scales: Q2_K to Q6_K and IQ4_XS, exactly.

Layouts: https://github.com/ggml-org/llama.cpp, ggml-common.h (blocks), ggml-quants.c (meaning).
"""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor

from kernels import Int2K, Int3K, Int4K, Int4T, Int5K, Int6, Weight

from .blocks import Blocks, halves, in_pieces, in_rows, mask, words_of
from .numbers import as_stored


def q2_k(blocks: Blocks) -> Weight:
    """16 bytes with a scale below and a minimum above, 64 of values, d, dmin: d * s * q - dmin * m."""
    rows, both = len(blocks), blocks[..., :16]
    values = in_pieces(words_of(blocks, 16, 80), 32, _fill_pairs)
    scale, minimum = in_rows(both & 15, rows), in_rows(both >> 4, rows)
    return Int2K(in_rows(values, rows), scale, minimum, halves(blocks, 80), halves(blocks, 82))


def _fill_pairs(words: np.ndarray, out: np.ndarray) -> None:
    """32 bytes hold 128 values: bits 2j of byte i belong to value 32j + i."""
    two = mask(3, np.uint64)
    for half, j, word in itertools.product(range(2), range(4), range(4)):
        out[:, 16 * half + 4 * j + word] = words[:, 4 * half + word] >> 2 * j & two


def q3_k(blocks: Blocks) -> Weight:
    """32 bytes of high bits, 64 of low ones, 12 of 6-bit scales, d: d * (s - 32) * (q - 4)."""
    rows, packed = len(blocks), blocks[..., 96:108]
    values = in_pieces(words_of(blocks, 0, 96), 32, _fill_q3_k)
    low, high = packed[..., :8], packed[..., 8:]
    scale = np.concatenate([low & 15, low >> 4], -1)
    scale |= np.concatenate([(high >> shift & 3) << 4 for shift in (0, 2, 4, 6)], -1)
    return Int3K(in_rows(values, rows), in_rows(scale, rows).view(torch.int8) - 32, halves(blocks, 108))


def _fill_q3_k(words: np.ndarray, out: np.ndarray) -> None:
    """Bit g of high byte i belongs to value 32g + i."""
    _fill_pairs(words[:, 4:], out)
    one = mask(1, np.uint64)
    for group, word in itertools.product(range(8), range(4)):
        out[:, 4 * group + word] |= (words[:, word] >> group & one) << 2


def q4_k(blocks: Blocks) -> Weight:
    """d, dmin, 12 bytes of 6-bit scales and minima, 4 x 32 bytes: their low nibbles, then their high ones."""
    rows = len(blocks)
    packed = in_pieces(blocks.view(np.uint64).reshape(-1, 18)[:, 2:], 16, _fill_nibbles)
    return Int4K(in_rows(packed, rows), *_scales_and_minima(blocks), halves(blocks, 0), halves(blocks, 2))


def _scales_and_minima(blocks: Blocks) -> tuple[Tensor, Tensor]:
    """Q4_K's and Q5_K's 12 bytes from the fifth on: 6 bits each [rows, groups of 32]."""
    words = blocks.view(np.uint32).reshape(-1, blocks.shape[-1] // 4)[:, 1:4]
    both = in_pieces(words, 4, _fill_scales)
    return in_rows(both[:, :2], len(blocks)), in_rows(both[:, 2:], len(blocks))


def _fill_nibbles(words: np.ndarray, out: np.ndarray) -> None:
    """Byte b of a pair of groups holds input b of both; Int4K's, inputs b and b + 16 (2 words on) of one."""
    low = mask(15, np.uint64)
    for pair, word in itertools.product(range(0, 16, 4), range(2)):
        first, second = words[:, pair + word], words[:, pair + word + 2]
        out[:, pair + word] = first & low | (second & low) << 4
        out[:, pair + word + 2] = first >> 4 & low | second & ~low


def _fill_scales(words: np.ndarray, out: np.ndarray) -> None:
    """Scales 0-3, minima 0-3, low halves of both 4-7, whose high bits are the top bits of the first eight."""
    six, four, top = (mask(byte, np.uint32) for byte in (0x3F, 0x0F, 0x30))
    scales, minima, rest = words.T
    out[:, 0] = scales & six
    out[:, 1] = rest & four | scales >> 2 & top
    out[:, 2] = minima & six
    out[:, 3] = rest >> 4 & four | minima >> 2 & top


def q5_k(blocks: Blocks) -> Weight:
    """As Q4_K, with 32 bytes of high bits before the nibbles."""
    rows = len(blocks)
    values = in_rows(in_pieces(words_of(blocks, 16, 176), 32, _fill_q5_k), rows)
    return Int5K(values, *_scales_and_minima(blocks), halves(blocks, 0), halves(blocks, 2))


def _fill_q5_k(words: np.ndarray, out: np.ndarray) -> None:
    """Nibbles as Q4_K has them; bit g of high byte i belongs to value 32g + i."""
    low, one = mask(15, np.uint64), mask(1, np.uint64)
    for group, word in itertools.product(range(8), range(4)):
        nibbles = words[:, 4 + 4 * (group // 2) + word] >> 4 * (group % 2) & low
        out[:, 4 * group + word] = nibbles | (words[:, word] >> group & one) << 4


def q6_k(blocks: Blocks) -> Weight:
    """128 bytes of low nibbles, 64 of high bits, 16 signed scales, d: d * scale * (q - 32)."""
    words = np.ascontiguousarray(blocks[..., :192]).view(np.uint64).reshape(-1, 24)
    values, scale = in_pieces(words, 32, _fill_q6_k), blocks[..., 192:208].copy()
    rows = len(blocks)
    return Int6(in_rows(values, rows), in_rows(scale, rows).view(torch.int8), halves(blocks, 208))


def _fill_q6_k(words: np.ndarray, out: np.ndarray) -> None:
    """Each half has four quarters of 4 words: nibbles low, low, high, high; bits 0-1, 2-3, 4-5, 6-7."""
    low, two = mask(15, np.uint64), mask(3, np.uint64)
    for half, quarter, word in itertools.product(range(2), range(4), range(4)):
        nibbles = words[:, 8 * half + 4 * (quarter % 2) + word] >> 4 * (quarter // 2) & low
        bits = words[:, 16 + 4 * half + word] >> 2 * quarter & two
        out[:, 16 * half + 4 * quarter + word] = nibbles | bits << 4


def iq4_xs(blocks: Blocks) -> Weight:
    """d, 8 x 2 high bits and 8 x 4 low ones of scales, 8 x 16 bytes of nibbles: d * (s - 32) * table[q].

    The product of d and a scale is exact in float32.
    """
    rows, high, low = len(blocks), blocks[..., 2:4].view(np.uint16), blocks[..., 4:8]
    nibbles = np.stack([low & 15, low >> 4], -1).reshape(*low.shape[:2], 8)
    scale = nibbles | (high >> np.arange(0, 16, 2, dtype=np.uint16) & 3).astype(np.uint8) << 4
    product = halves(blocks, 0).float()[..., None] * torch.from_numpy(scale.view(np.int8) - 32)
    packed = in_rows(blocks[..., 8:].copy(), rows)
    return Int4T(packed, as_stored(product.reshape(rows, -1)), "iq4")
