"""Triton's interpreter, made to round and multiply as a card does. Imported by conftest.py before any kernel.

As it comes (3.6 to 3.9) it keeps bfloat16 as uint16 and computes with those integers, cuts float32 off where
it should round to bfloat16, and rounds to e4m3 wrongly, past the largest value into nonsense. Here a value
of a small type is widened to float32, computed with, and rounded to the nearest, ties to even. And what is
done again and again for nothing is done once.
"""

from __future__ import annotations

import os
import sys
from typing import Any

# As tests/conftest.py does for a whole run; this file is read before its settings when asked for alone.
os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter

Handle, Builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
SMALL = {
    tl.bfloat16: torch.bfloat16,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5: torch.float8_e5m2,
}
LARGEST_E4M3 = 448.0
BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift)


def is_small(dtype: Any) -> bool:
    return dtype.scalar in SMALL


def widened(handle: Any) -> np.ndarray:
    """A handle's values; small types as float32."""
    if not is_small(handle.dtype):
        return handle.data
    data = np.ascontiguousarray(handle.data)
    bits = torch.from_numpy(data.view(np.int16 if data.itemsize == 2 else np.uint8))
    return bits.view(SMALL[handle.dtype.scalar]).float().numpy()


def rounded(values: np.ndarray, dtype: Any) -> Any:
    """A handle of a type that holds these values."""
    scalar = dtype.scalar
    stored = interpreter._get_np_dtype(scalar)
    if scalar not in SMALL:
        return Handle(np.asarray(values).astype(stored), scalar)
    wide = torch.from_numpy(np.ascontiguousarray(np.asarray(values, dtype=np.float32)))
    if scalar == tl.float8e4nv:
        wide = wide.clamp(-LARGEST_E4M3, LARGEST_E4M3)
    small = wide.to(SMALL[scalar])
    bits = small.view(torch.int16 if small.itemsize == 2 else torch.uint8)
    return Handle(bits.numpy().view(stored), scalar)


def convert(original: Any) -> Any:
    """A conversion between types, `original` where neither is small."""

    def patched(self: Any, source: Any, dtype: Any, *how: Any) -> Any:
        if is_small(source.dtype) or is_small(dtype):
            return rounded(widened(source), dtype)
        return original(self, source, dtype, *how)

    return patched


def binary(original: Any) -> Any:
    def patched(self: Any, left: Any, right: Any, op: Any) -> Any:
        if op in BITWISE or not (is_small(left.dtype) or is_small(right.dtype)):
            return original(self, left, right, op)
        values = op(widened(left), widened(right))
        return Handle(values, left.dtype.scalar) if values.dtype == np.bool_ else rounded(values, left.dtype)

    return patched


def unary(original: Any) -> Any:
    def patched(self: Any, value: Any, op: Any) -> Any:
        return (
            rounded(op(widened(value)), value.dtype) if is_small(value.dtype) else original(self, value, op)
        )

    return patched


def dot(self: Any, left: Any, right: Any, plus: Any, *how: Any) -> Any:
    """Integers are multiplied as float64: exact, and a hundred times as fast as numpy's integers."""
    wide = np.float64 if left.dtype.scalar.is_int() else np.float32
    product = np.matmul(widened(left).astype(wide), widened(right).astype(wide))
    return Handle((product + plus.data).astype(plus.data.dtype), plus.dtype.scalar)


def get_bf16(self: Any, value: float) -> Any:
    return rounded(np.array([value], np.float32), tl.bfloat16)


def index_of(tensor: Any) -> int:
    return int(np.asarray(tensor.handle.data).reshape(-1)[0])


def as_index(original: Any) -> Any:
    """Triton 3.6 hands range() an array of one value, which numpy 2.5 no longer takes for a number."""

    def patched(tensor: Any, *scope: Any) -> None:
        original(tensor, *scope)
        if scope:
            scope[0].set_attr(tensor, "__index__", index_of)
        else:
            tensor.__index__ = index_of

    return patched


def once(original: Any) -> Any:
    """Triton makes its language callable anew for each call of a function, within kernels too: half of all
    time. What it sets is the same each time and may stay.
    """
    known: dict[int, tuple[Any, Any]] = {}  # by a module's names, which the function keeps alive

    def patched(function: Any) -> Any:
        key = id(function.__globals__)
        if key not in known:
            scope = original(function)
            if scope is not None:  # of 3.7 and later, which take it all back after a launch
                scope._changes.clear()
            known[key] = function, scope
        return known[key][1]

    return patched


def by_name(original: Any) -> Any:
    """A type's twin in numpy, which is looked up a dozen times an operation, from a table made each time."""
    known: dict[str, Any] = {}

    def patched(dtype: Any) -> Any:
        name = dtype.scalar.name
        if name not in known:
            known[name] = original(dtype.scalar)
        return known[name]

    return patched


Builder.cast_impl = convert(Builder.cast_impl)
Builder.create_fp_to_fp = convert(Builder.create_fp_to_fp)
Builder.binary_op = binary(Builder.binary_op)
Builder.unary_op = unary(Builder.unary_op)
Builder.create_dot = dot
if not hasattr(Builder, "get_bf16"):  # 3.6
    Builder.get_bf16 = get_bf16
interpreter._patch_lang_tensor = as_index(interpreter._patch_lang_tensor)
interpreter._patch_lang = once(interpreter._patch_lang)
interpreter._get_np_dtype = by_name(interpreter._get_np_dtype)
assert sys.modules["triton.language"].sum.__class__.__name__ == "InterpretedFunction", "imported too early"
