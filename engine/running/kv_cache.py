"""The memory behind the blocks: one pool of bytes per page kind, in which a block is one contiguous run.

    pool [num_blocks, layers, K | V, kv heads, block_size * head_dim]      of 8 bits: [num_blocks, bytes]

so that copying, moving or saving a block is one copy of one run. Block 0 is never given to a sequence:
padding may point at it. Which block belongs to whom is the block pool's affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from kernels import KVLayer, Ops, fetch, head_bytes, read_pool, send

from ..fitting.memory_plan import KindFacts
from ..models import ModelConfig
from .give_back import can_give_back, give_back


class BlockContents:
    """Called, it waits until the copy is here, and gives it. Any thread may call."""

    def __init__(self, fetched: Callable[[], Tensor]) -> None:
        self._fetched: Callable[[], Tensor] | None = fetched
        self._contents = bytearray()

    def __call__(self) -> bytearray:
        if fetched := self._fetched:  # of two threads that come at once each gets it
            self._contents = bytearray(fetched().numpy().data)
            self._fetched = None  # pinned memory is for the way only
        return self._contents


@dataclass(frozen=True, slots=True)
class KVCache:
    """The pools, and each layer's view of its own."""

    pools: tuple[Tensor, ...]  # one per page kind
    layers: tuple[KVLayer, ...]
    block_size: int

    @property
    def gives_back(self) -> bool:
        """Whether memory of single blocks can be had by other programs."""
        return self.pools[0].device.type == "cpu" and can_give_back()

    def give_back(self, kind: int, blocks: Sequence[int]) -> int:
        """Let the system have the memory of these blocks, in rising order; bytes it took. They read as
        anything until they are written again.
        """
        pool, given = self.pools[kind], 0
        size = pool[0].numel() * pool.dtype.itemsize
        for begin, end in runs(blocks) if self.gives_back else ():
            given += give_back(pool.data_ptr() + begin * size, (end - begin) * size)
        return given

    def read_block(self, kind: int, block: int) -> BlockContents:
        """A copy of all that a block holds after what the device was given so far. Waits for nothing."""
        return BlockContents(fetch(self._bytes(kind, block)))

    def write_block(self, kind: int, block: int, contents: bytes | bytearray | memoryview) -> None:
        """Let a block hold what was read, in the order of the device's work. Waits for nothing."""
        target = self._bytes(kind, block)
        assert len(contents) == len(target), "a block of another size"
        send(torch.from_numpy(np.frombuffer(contents, np.uint8)), target)

    def _bytes(self, kind: int, block: int) -> Tensor:
        return self.pools[kind][block].reshape(-1).view(torch.uint8)


def runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Rising numbers as ranges: [3, 4, 5, 9] -> (3, 6), (9, 10)."""
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[begin], numbers[at - 1] + 1
            begin = at


def kind_facts(config: ModelConfig, dtype: torch.dtype) -> tuple[KindFacts, ...]:
    """The page kinds of a model: layers with one window keep memory alike, but for those that look at another
    layer's.
    """
    facts = []
    for window in config.windows:
        layers = tuple(
            i for i, layer in enumerate(config.layers) if layer.window == window and layer.source is None
        )
        kv_heads, head_dim, _ = config.sizes(layers[0])
        num_bytes = len(layers) * 2 * kv_heads * head_bytes(head_dim, dtype)
        facts.append(KindFacts("window" if window else "full", layers, num_bytes, window))
    return tuple(facts)


def make_kv_cache(config: ModelConfig, ops: Ops, num_blocks: Sequence[int], block_size: int) -> KVCache:
    """A pool of zeros for each page kind; a processor's take up memory only as blocks are first written."""
    places: dict[int, tuple[Tensor, int, int]] = {}  # layer -> its pool, its place in there, its kind
    scales: dict[int, Tensor | None] = {}
    pools = []
    for kind, (facts, blocks) in enumerate(zip(kind_facts(config, ops.kv_dtype), num_blocks, strict=True)):
        pool = _zeros((blocks, facts.bytes_per_token * block_size), torch.uint8, ops.device)
        kv_heads, head_dim, _ = config.sizes(facts.layers[0])
        heads = len(facts.layers), kv_heads, block_size, head_dim
        values, kind_scales = read_pool(pool, *heads, ops.kv_dtype)
        pools.append(values if kind_scales is None else pool)
        places |= {layer: (values, place, kind) for place, layer in enumerate(facts.layers)}
        scales |= dict.fromkeys(facts.layers, kind_scales)
    owners = [i if layer.source is None else layer.source for i, layer in enumerate(config.layers)]
    layers = tuple(
        KVLayer(
            *places[owners[i]],
            block_size,
            config.num_heads,
            config.sizes(i)[1],
            window=layer.window,
            soft_cap=config.score_cap,
            scale=config.score_scale,
            scales=scales[owners[i]],
        )
        for i, layer in enumerate(config.layers)
    )
    return KVCache(tuple(pools), layers, block_size)


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    return untouched(shape, dtype) if device.type == "cpu" else torch.zeros(shape, dtype=dtype, device=device)


def untouched(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Zeros that the system provides page by page, on a 64-byte border. torch.zeros would write them all."""
    num_bytes = math.prod(shape) * dtype.itemsize
    raw = np.zeros(num_bytes + 64, np.uint8)
    begin = -raw.ctypes.data % 64
    return torch.from_numpy(raw[begin : begin + num_bytes]).view(dtype).view(shape)
