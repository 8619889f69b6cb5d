"""What every GGUF type shares: blocks of bytes, their scales, and taking them apart a machine word at a time.

A type stores a row as blocks, each with its scales beside its values; a format keeps scales and values apart.
Words of many bytes, one column of words at a time, in pieces that fit a cache: five times faster than byte by
byte. A mask keeps one field of every byte in a word.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .numbers import finite

Blocks = np.ndarray  # uint8 [rows, blocks per row, bytes per block]
PIECE = 2048  # blocks


def halves(blocks: Blocks, at: int) -> Tensor:
    """The float16 at byte `at` of each block: [rows, blocks]."""
    return finite(torch.from_numpy(blocks.view(np.float16)[..., at // 2].copy()))


def in_rows(values: np.ndarray, rows: int) -> Tensor:
    """What each block holds, one after the other: uint8 [rows, values per row]."""
    return torch.from_numpy(np.ascontiguousarray(values).view(np.uint8).reshape(rows, -1))


def words_of(blocks: Blocks, start: int, end: int) -> np.ndarray:
    """Bytes `start` to `end` of each block, as uint64 [blocks, words]."""
    return np.ascontiguousarray(blocks[..., start:end]).view(np.uint64).reshape(-1, (end - start) // 8)


def mask(byte: int, dtype: type[np.unsignedinteger]) -> np.unsignedinteger:
    """A word with this byte all over."""
    return dtype(int.from_bytes(bytes([byte]) * dtype().nbytes))


def in_pieces(words: np.ndarray, width: int, fill: Callable[[np.ndarray, np.ndarray], None]) -> np.ndarray:
    """`fill(words, out)` for pieces of [blocks, ...] -> [blocks, width]."""
    out = np.empty((len(words), width), words.dtype)
    for at in range(0, len(words), PIECE):
        fill(words[at : at + PIECE], out[at : at + PIECE])
    return out
