"""What Numba lacks for this backend: memory and calls by address, a barrier, C functions from its disk cache.

A kernel is a C function `void kernel(args, i, n)`: `args` is the address of a row of int64 (numbers and
addresses), the other two are mostly the thread and the number of threads. Kernels call each other by address,
so that each is compiled once, by itself, and only where it is used.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from .emit import ARM, F16, F32, I8, I16, I32, I64, X86, Emitter, Value, emitted

log = logging.getLogger("octavo.kernels")

# what Numba compiles for: "avx512vnni", "avx2", "fma", ...
FEATURES = {
    name[1:] for name in cpu_target.target_context.codegen().magic_tuple()[2].split(",") if name[:1] == "+"
}
# Polls of a barrier before the core is offered to others: who is still to come may be waiting for this core.
SPINS = 2000
COMPILING = threading.Lock()  # two loading threads would compile the same kernel twice
KERNEL = types.void(*[types.int64] * 3)
FAST = {"contract", "nsz", "arcp", "reassoc"}
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


def compiles_here() -> bool:
    """Whether this machine multiplies and adds at once and knows float16: all of the last ten years do."""
    return ARM or (X86 and {"fma", "f16c"} <= FEATURES)


class _Cache(FunctionCache):
    """Numba's disk cache. Its key holds this folder's text: Numba would look at a function's file alone. A
    file that is damaged, or that the disk has no room for, costs a compilation and nothing else.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # whatever a damaged file can raise
            log.warning("A compiled kernel could not be read, so it is compiled anew: %r", error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            log.warning("A compiled kernel was not kept: %s", error)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return super()._index_key(sig, codegen), SOURCES


@cache
def _function(make: Callable[..., Callable[..., None]], options: tuple[int, ...], fast: bool) -> CFunc:
    settings = {"error_model": "numpy", "fastmath": FAST if fast else False}
    function = make(*options)
    compiled = CFunc(function, (KERNEL.args, KERNEL.return_type), {}, settings)
    compiled._cache = _Cache(function)  # type: ignore[attr-defined]
    compiled.compile()
    return compiled


def compiled(make: Callable[..., Any], *options: int, fast: bool = False) -> int:
    """The address of the C function that make(*options) describes, compiled once per process. `fast` lets
    LLVM reorder sums: the bits stay the same where a row is always summed by the same code.
    """
    with COMPILING:
        return _function(make, options, fast).address or 0


@intrinsic(prefer_literal=True)
def unpack(_: Any, args: Any, count: Any) -> Any:
    """The first `count` of a kernel's arguments, as a tuple."""
    kind = types.UniTuple(types.int64, count.literal_value)

    def lower(context: Any, builder: ir.IRBuilder, _: Any, raw: Sequence[ir.Value]) -> ir.Value:
        e, row = Emitter(builder), Value(builder, raw[0])
        loaded = [e.load(row + 8 * i, I64).raw for i in range(count.literal_value)]
        return context.make_tuple(builder, kind, loaded)

    return kind(types.int64, count), lower


def _pointer(kind: types.Type, llvm: ir.Type) -> Any:
    def at(e: Emitter, address: Value) -> Value:
        return Value(e.builder, e.pointer(address, llvm))

    return emitted(types.CPointer(kind))(at)


# f32(address)[i] is the i-th float32 from that address on, to read and to write
f32, i64 = _pointer(types.float32, F32), _pointer(types.int64, I64)
u8, s8, u16 = _pointer(types.uint8, I8), _pointer(types.int8, I8), _pointer(types.uint16, I16)
u32, i32 = _pointer(types.uint32, I32), _pointer(types.int32, I32)
f64 = _pointer(types.float64, ir.DoubleType())


@emitted(types.float32)
def half(e: Emitter, address: Value) -> Value:
    """The float16 at an address."""
    return e.load(address, F16).to("fpext", F32)


@emitted(types.uint16, x=types.float32)
def to_half(e: Emitter, x: Value) -> Value:
    """The bits of the nearest float16; beyond its range the largest: no infinity enters the cache."""
    most = e.value(F32, 65504.0)
    x = e.largest(e.smallest(x, most), e.value(F32, -65504.0))
    return x.to("fptrunc", F16).to("bitcast", I16)


@emitted(types.float32)
def as_float(e: Emitter, bits: Value) -> Value:
    """The float32 whose bits stand in the low half of an int64."""
    return bits.to("trunc", I32).to("bitcast", F32)


@emitted()
def call(e: Emitter, function: Value, args: Value, i: Value, n: Value) -> None:
    """Run the kernel at an address."""
    e.call_at(function, ir.VoidType(), args, i, n)


@emitted()
def _give_way(e: Emitter, function: Value) -> None:
    e.call_at(function, I32)


@emitted()
def lock(e: Emitter, function: Value, lock: Value) -> None:
    """Wait for one of the interpreter's locks; `function` is PyThread_acquire_lock's address."""
    e.call_at(function, I32, lock, e.value(I32, 1))


@emitted()
def unlock(e: Emitter, function: Value, lock: Value) -> None:
    """Let go of it; `function` is PyThread_release_lock's address."""
    e.call_at(function, ir.VoidType(), lock)


@emitted(types.int64)
def arrive(e: Emitter, counter: Value) -> Value:
    """Count an arrival; how many there were before."""
    return Value(e.builder, e.builder.atomic_rmw("add", e.pointer(counter, I64), I64(1), "seq_cst"))


@emitted(types.int64)
def _arrived(e: Emitter, counter: Value) -> Value:
    if X86:
        e.call("llvm.x86.sse2.pause", ir.VoidType())
    elif ARM:
        e.call("llvm.aarch64.hint", ir.VoidType(), e.value(I32, 1))
    return Value(e.builder, e.builder.load_atomic(e.pointer(counter, I64), "acquire", 8))


@njit
def meet(counter: int, goal: int, give_way: int) -> None:
    """A barrier: returns when `goal` arrivals were counted. `give_way` is the address of sched_yield."""
    arrive(counter)
    spins = 0
    while _arrived(counter) < goal:
        spins += 1
        if spins > SPINS:
            _give_way(give_way)
