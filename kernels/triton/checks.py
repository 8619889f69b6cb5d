"""What a launch takes, looked at on the host before a kernel sees an address: kernels check nothing.

Each raises ValueError with what there is and what is needed: shapes, types, strides, devices, blocks. What a
step's numbers name (tokens, slots, block tables) is the engine's to check, where they are written.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..ops import Experts, KVLayer, Norm, Rope
from .targets import Target

DTYPES = (torch.float32, torch.float16, torch.bfloat16)  # that are computed in
KV_DTYPES = (*DTYPES, torch.int8, torch.float8_e4m3fn)


def check_dtypes(target: Target, dtype: torch.dtype, kv_dtype: torch.dtype) -> None:
    """For what a target cannot do."""
    small = kv_dtype.itemsize == 1
    if dtype not in DTYPES or kv_dtype not in KV_DTYPES or not (small or kv_dtype == dtype):
        raise ValueError(
            f"Triton computes in float32, float16 or bfloat16, not {dtype} with {kv_dtype} kept."
        )
    if dtype == torch.bfloat16 and not target.bf16:
        raise ValueError(f"{target.name} does not multiply bfloat16; use float16.")
    if (small and not target.matrix) or (kv_dtype == torch.float8_e4m3fn and not target.fp8):
        raise ValueError(
            f"{target.name} cannot keep keys and values as {kv_dtype}; use torch.int8 or {dtype}."
        )


def check_buffers(count: int, device: torch.device, *buffers: Tensor) -> None:
    """Every buffer has that many rows, one behind the other, on the device."""
    for buffer in buffers:
        if len(buffer) < count or not buffer.is_contiguous() or buffer.device.type != device.type:
            raise ValueError(
                f"A step of {count} rows needs contiguous buffers of as many on {device}; one is "
                f"{tuple(buffer.shape)}, strides {buffer.stride()}, on {buffer.device}."
            )


def check_rows(name: str, buffer: Tensor, width: int, dtype: torch.dtype) -> None:
    """A buffer of rows of that width and type."""
    if buffer.dim() != 2 or buffer.shape[1] != width or buffer.dtype != dtype:
        raise ValueError(
            f"{name} is {tuple(buffer.shape)} of {buffer.dtype}; needed are rows of {width} {dtype}."
        )


def check_vector(name: str, values: Tensor, lengths: Sequence[int], device: torch.device) -> None:
    """float32, one behind the other, of one of these lengths."""
    fits = values.dim() == 1 and len(values) in lengths and values.is_contiguous()
    if not fits or values.dtype != torch.float32 or values.device.type != device.type:
        raise ValueError(
            f"{name} is {tuple(values.shape)} of {values.dtype} on {values.device}; needed are "
            f"{' or '.join(map(str, lengths))} contiguous torch.float32 on {device}."
        )


def check_rope(rope: Rope, norms: Sequence[tuple[Norm | None, int]], head_dim: int) -> None:
    """Cosines and sines of one shape that turn no more than a head; gains of a head, or of so many heads."""
    cos, sin = rope.cos, rope.sin
    check_rows("the rope's cosines", cos, cos.shape[-1], torch.float32)
    if cos.shape != sin.shape or sin.dtype != cos.dtype or 2 * cos.shape[1] > head_dim:
        raise ValueError(
            f"Cosines {tuple(cos.shape)} and sines {tuple(sin.shape)} of {sin.dtype} cannot turn heads of "
            f"{head_dim}: needed are two tables of float32 with at most {head_dim // 2} columns."
        )
    check_buffers(0, cos.device, cos, sin)
    for norm, heads in norms:
        if norm is not None:
            check_vector("a gain", norm.gain, (head_dim, heads * head_dim), cos.device)


def check_layer(kv: KVLayer, kv_dtype: torch.dtype, num_kinds: int) -> None:
    """The layer's pool is as its numbers say, and of this type; the batch has its page kind."""
    wanted = (2, kv.num_kv_heads, kv.block_size * kv.head_dim)
    pool = kv.pool
    if pool.shape[2:] != wanted or pool.dtype != kv_dtype or not pool[0].is_contiguous():
        raise ValueError(
            f"The pool's blocks are {tuple(pool.shape[2:])} of {pool.dtype}, strides {pool.stride()}; "
            f"the layer needs contiguous ones, {wanted} of {kv_dtype}."
        )
    if (kv.scales is None) == (pool.dtype.itemsize == 1):
        raise ValueError(
            f"Keys and values of {pool.dtype} come with scales if they have 8 bits, else without."
        )
    if kv.num_heads % kv.num_kv_heads or kv.block_size % 16 or not 0 <= kv.layer < pool.shape[1]:
        raise ValueError(
            f"{kv.num_heads} heads over {kv.num_kv_heads}, blocks of {kv.block_size}, layer {kv.layer} "
            f"of {pool.shape[1]}: heads must divide, blocks be multiples of 16, the layer be there."
        )
    if not 0 <= kv.kind < num_kinds:
        raise ValueError(f"A layer of page kind {kv.kind}; the step has {num_kinds} kinds.")
    if kv.scales is not None:
        shape = (*pool.shape[:4], kv.block_size)
        if kv.scales.shape != shape or kv.scales.dtype != torch.float16 or not kv.scales[0].is_contiguous():
            raise ValueError(
                f"The pool's scales are {tuple(kv.scales.shape)} of {kv.scales.dtype}; needed are "
                f"contiguous ones, {shape} of torch.float16."
            )
    if kv.sinks is not None:
        check_vector("the sinks", kv.sinks, (kv.num_heads,), pool.device)


def check_experts(experts: Experts) -> None:
    """Matrices that fit each other, and as many experts as the router tells apart."""
    count, width = experts.router.shape
    wanted = {(2 * down.shape[1], width) for down in experts.down} | {(width, experts.down[0].shape[1])}
    found = {each.shape for each in (*experts.gate_up, *experts.down)}
    if not count == len(experts.gate_up) == len(experts.down) or not found <= wanted:
        raise ValueError(
            f"A router of {count} x {width} has {len(experts.gate_up)} and {len(experts.down)} matrices of "
            f"{sorted(found)}: needed are {count} of each, all alike, from {width} and to {width}."
        )
    if not 1 <= experts.top_k <= count:
        raise ValueError(f"A token cannot go through {experts.top_k} of {count} experts.")


def check_blocks(pool: Tensor, ids: Sequence[int]) -> None:
    """Blocks that a pool has."""
    if ids and not 0 <= min(ids) <= max(ids) < len(pool):
        raise ValueError(f"Blocks {min(ids)} to {max(ids)} were named; the pool has {len(pool)}.")
