"""A small language over LLVM: `Value` has arithmetic, `Emitter` memory, loops and calls.

`@emitted` turns a Python function that writes instructions into one that compiled code can call. What is
written is exact: no fast-math, each fused multiply-add asked for by name, so the same sum has the same bits
on every path. Vectors have 16 lanes whatever the machine, LLVM cuts them to its registers; addresses are
plain int64. This file knows no matrix and no model.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numba.core.cgutils as cgutils
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 16
I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32 = ir.HalfType(), ir.FloatType()
V64I8, V32I8, V16I8 = (ir.VectorType(I8, lanes) for lanes in (64, 32, 16))
V32I16 = ir.VectorType(I16, 32)
V16I16, V8I32, V16I32 = ir.VectorType(I16, 16), ir.VectorType(I32, 8), ir.VectorType(I32, 16)
V16F16, V16F32 = ir.VectorType(F16, 16), ir.VectorType(F32, 16)
X86 = llvm.get_process_triple().startswith(("x86_64", "amd64"))
ARM = llvm.get_process_triple().startswith(("aarch64", "arm64"))
# minimax for (2^f - 1) / f between -1/2 and 1/2 (an error of 9e-8), the highest power first
EXP2 = (0.0013264727, 0.009671513, 0.055507336, 0.24022242, 0.693147)


def constant(kind: ir.Type, value: Any) -> ir.Constant:
    """A constant of `kind`: one number for all lanes of a vector, or a list of them."""
    if isinstance(kind, ir.VectorType) and not isinstance(value, list):
        value = [value] * kind.count
    return ir.Constant(kind, value)


class Value:
    """An LLVM value with Python's operators. A Python number beside it takes its type."""

    def __init__(self, builder: ir.IRBuilder, raw: ir.Value) -> None:
        self.builder, self.raw = builder, raw

    @property
    def type(self) -> ir.Type:
        return self.raw.type

    def _apply(self, floats: str, ints: str, other: Any) -> Value:
        right = other.raw if isinstance(other, Value) else constant(self.type, other)
        emit = getattr(self.builder, ints if is_integer(self.type) else floats)
        return Value(self.builder, emit(self.raw, right))

    def __add__(self, other: Any) -> Value:
        return self._apply("fadd", "add", other)

    def __sub__(self, other: Any) -> Value:
        return self._apply("fsub", "sub", other)

    def __mul__(self, other: Any) -> Value:
        return self._apply("fmul", "mul", other)

    def __truediv__(self, other: Any) -> Value:
        return self._apply("fdiv", "udiv", other)

    def __and__(self, other: Any) -> Value:
        return self._apply("", "and_", other)

    def __or__(self, other: Any) -> Value:
        return self._apply("", "or_", other)

    def __lshift__(self, other: Any) -> Value:
        return self._apply("", "shl", other)

    def __rshift__(self, other: Any) -> Value:
        """Filled with zeros; see `ashr`."""
        return self._apply("", "lshr", other)

    def ashr(self, other: Any) -> Value:
        """Shifted right, filled with the sign."""
        return self._apply("", "ashr", other)

    def to(self, conversion: str, kind: ir.Type) -> Value:
        """Converted by an LLVM instruction: sitofp, fptosi, zext, sext, trunc, fpext, fptrunc, bitcast."""
        return Value(self.builder, getattr(self.builder, conversion)(self.raw, kind))


def is_integer(kind: ir.Type) -> bool:
    return isinstance(getattr(kind, "element", kind), ir.IntType)


class Emitter:
    """Writes instructions at one place of a function that Numba compiles."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def value(self, kind: ir.Type, number: Any) -> Value:
        return Value(self.builder, constant(kind, number))

    def call(self, name: str, result: ir.Type, *arguments: Value) -> Value:
        """Call a function by name, an LLVM intrinsic as a rule."""
        kind = ir.FunctionType(result, [a.type for a in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return Value(self.builder, self.builder.call(function, [a.raw for a in arguments]))

    def call_at(self, address: Value, result: ir.Type, *arguments: Value) -> None:
        """Call the C function at an address."""
        kind = ir.FunctionType(result, [a.type for a in arguments])
        self.builder.call(self.pointer(address, kind), [a.raw for a in arguments])

    # memory

    def pointer(self, address: Value, kind: ir.Type) -> ir.Value:
        return self.builder.inttoptr(address.raw, kind.as_pointer())

    def load(self, address: Value, kind: ir.Type) -> Value:
        raw = self.builder.load(self.pointer(address, kind))
        raw.align = 1
        return Value(self.builder, raw)

    def load_half(self, address: Value) -> Value:
        """16 float16 as float32."""
        return self.load(address, V16F16).to("fpext", V16F32)

    def load_splat(self, address: Value, kind: ir.Type) -> Value:
        """One number in every lane."""
        return self.splat(self.load(address, kind))

    def store(self, value: Value, address: Value) -> None:
        self.builder.store(value.raw, self.pointer(address, value.type)).align = 1

    def prefetch(self, address: Value) -> None:
        """Ask for a cache line, into L2."""
        read, level, data = (self.value(I32, n) for n in (0, 2, 1))
        place = Value(self.builder, self.pointer(address, I8))
        self.call("llvm.prefetch.p0", ir.VoidType(), place, read, level, data)

    def in_order(self) -> None:
        """Loads before this place stay before those after it: LLVM sorts them otherwise. No instruction."""
        self.builder.fence("acquire", "singlethread")

    def opaque(self, x: Value) -> Value:
        """The same int64, its origin hidden. LLVM computes addresses that it knows to be x + n * step one
        from the other, in a chain, in the innermost loop.
        """
        kind = ir.FunctionType(I64, [I64])
        return Value(self.builder, self.builder.asm(kind, "", "=r,0", [x.raw], False))

    # lanes

    def splat(self, scalar: Value) -> Value:
        vector = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
        first = Value(self.builder, self.builder.insert_element(vector, scalar.raw, I32(0)))
        return self.shuffle(first, [0] * LANES)

    def first(self, vector: Value) -> Value:
        return Value(self.builder, self.builder.extract_element(vector.raw, I32(0)))

    def shuffle(self, vector: Value, lanes: Sequence[int], second: Value | None = None) -> Value:
        """The chosen lanes of a vector, or of two end to end."""
        other = second.raw if second else ir.Constant(vector.type, ir.Undefined)
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
        return Value(self.builder, self.builder.shuffle_vector(vector.raw, other, mask))

    def reduce(self, x: Value, join: Callable[[Value, Value], Value]) -> Value:
        """All lanes joined pairwise, always in the same order: the two halves, then their halves."""
        lanes = x.type.count
        while lanes > 1:
            lanes //= 2
            x = join(self.shuffle(x, range(lanes)), self.shuffle(x, range(lanes, 2 * lanes)))
        return self.first(x)

    # arithmetic

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """x * y + z, rounded once."""
        return self.call("llvm.fma.v16f32", V16F32, x, y, z)

    def round(self, x: Value) -> Value:
        return self.call("llvm.nearbyint.v16f32", V16F32, x)

    def magnitude(self, x: Value) -> Value:
        return self.call("llvm.fabs.v16f32", V16F32, x)

    def exp2(self, x: Value) -> Value:
        """2^x of 16 floats up to 127, within 2e-7 of its value, exactly 1 for 0; never less than 2^-126."""
        x = self.largest(x, self.value(V16F32, -126.0))
        whole = self.round(x)
        part, power = x - whole, self.value(V16F32, EXP2[0])
        for coefficient in (*EXP2[1:], 1.0):
            power = self.fma(power, part, self.value(V16F32, coefficient))
        return power * ((whole.to("fptosi", V16I32) + 127) << 23).to("bitcast", V16F32)

    def compare(self, sign: str, x: Value, y: Value) -> Value:
        """Lane by lane; integers are compared unsigned."""
        emit = self.builder.icmp_unsigned if is_integer(x.type) else self.builder.fcmp_ordered
        return Value(self.builder, emit(sign, x.raw, y.raw))

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        return Value(self.builder, self.builder.select(condition.raw, x.raw, y.raw))

    def largest(self, x: Value, y: Value) -> Value:
        return self.select(self.compare(">", x, y), x, y)

    def smallest(self, x: Value, y: Value) -> Value:
        return self.select(self.compare("<", x, y), x, y)

    def loop(
        self,
        count: Value,
        initial: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value] | None],
    ) -> list[Value]:
        """for i in range(count): state = body(i, state); gives back the last state."""
        builder, entry = self.builder, self.builder.block
        head, inside, done = (builder.append_basic_block(name) for name in ("head", "inside", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        start = [self.value(I64, 0), *initial]
        index, *state = phis = [Value(builder, builder.phi(value.type)) for value in start]
        builder.cbranch(builder.icmp_signed("<", index.raw, count.raw), inside, done)
        builder.position_at_end(inside)
        following = [*(body(index, [*state]) or ())]
        for phi, before, after in zip(phis, start, [index + 1, *following], strict=True):
            phi.raw.add_incoming(before.raw, entry)
            phi.raw.add_incoming(after.raw, builder.block)
        builder.branch(head)
        builder.position_at_end(done)
        return state


def emitted(result: types.Type = types.void, literals: int = 0, **kinds: types.Type) -> Callable[..., Any]:
    """Makes an intrinsic of function(emitter, literals ..., values ...). The first `literals` arguments are
    numbers known when compiling, the others Values: int64, or the Numba type that `kinds` names.
    """

    def wrap(function: Callable[..., Value | None]) -> Any:
        parameters = list(inspect.signature(function).parameters)

        def typing(_: Any, *arguments: Any) -> Any:
            fixed = [argument.literal_value for argument in arguments[:literals]]

            def lower(context: Any, builder: ir.IRBuilder, _: Any, raw: Sequence[ir.Value]) -> ir.Value:
                values = [Value(builder, value) for value in raw[literals:]]
                made = function(Emitter(builder), *fixed, *values)
                return context.get_dummy_value() if made is None else made.raw

            wanted = [kinds.get(name, types.int64) for name in parameters[1 + literals :]]
            return result(*arguments[:literals], *wanted), lower

        positional = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in parameters]
        typing.__name__ = function.__name__
        # Numba reads the signature to know how many arguments there are
        typing.__signature__ = inspect.Signature(positional)  # type: ignore[attr-defined]
        return intrinsic(prefer_literal=True)(typing)

    return wrap
