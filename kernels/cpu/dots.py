"""Ways to the dot product of unsigned bytes (weights) with signed bytes (activations, -127 to 127).

All are exact: which one a machine takes changes no bit of a result. Vectors are 16 x int32, each of them four
bytes; lane by lane, four products are added to a sum. This file knows nothing of formats.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from .emit import V8I32, V16I16, V16I32, V32I8, V32I16, V64I8, Emitter, Value
from .machine import FEATURES

PLAIN, AVX2, AVX_VNNI, AVX512_VNNI = range(4)
NEEDED = {AVX512_VNNI: "avx512vnni", AVX_VNNI: "avxvnni", AVX2: "avx2"}


def ways_here() -> list[int]:
    """What this machine can do, the fastest first."""
    return [way for way, feature in NEEDED.items() if feature in FEATURES] + [PLAIN]


def look_up(e: Emitter, way: int, nibbles: Value, table: Sequence[int]) -> Value:
    """16 x int32, each of four bytes from 0 to 15 -> four bytes of a table of 16."""
    index = nibbles.to("bitcast", V64I8)
    if way == AVX512_VNNI:
        found = e.call("llvm.x86.avx512.pshuf.b.512", V64I8, e.value(V64I8, [*table] * 4), index)
    elif way in (AVX2, AVX_VNNI):
        found = by_half(e, "llvm.x86.avx2.pshuf.b", V32I8, e.value(V64I8, [*table] * 4), index)
    else:  # bit by bit, half of what is left is chosen
        choices = [e.value(V64I8, entry) for entry in table]
        for bit in (8, 4, 2, 1):
            high = e.compare("!=", index & bit, e.value(V64I8, 0))
            half = len(choices) // 2
            choices = [e.select(high, choices[half + n], choices[n]) for n in range(half)]
        (found,) = choices
    return found.to("bitcast", V16I32)


def by_half(e: Emitter, name: str, result: ir.VectorType, *vectors: Value) -> Value:
    """An instruction for half of our vectors, twice."""
    half = vectors[0].type.count // 2
    parts = ([e.shuffle(v, range(h, h + half)) for v in vectors] for h in (0, half))
    low, high = (e.call(name, result, *part) for part in parts)
    return e.shuffle(low, range(2 * result.count), high)


class Dots:
    """Dot products in the making: one for each of `begin`, which they start from. No weight is larger than
    `largest`.
    """

    def __init__(self, e: Emitter, way: int, largest: int, begin: Sequence[Value]) -> None:
        self.e, self.way, self.sums = e, way, [*begin]
        # AVX2 multiplies bytes and adds neighbours into int16, where some such pairs can be added up
        self.room = (2**15 - 1) // (2 * 127 * largest) if way == AVX2 else 0
        self.pairs: list[list[Value]] = [[] for _ in begin]

    def add(self, i: int, weights: Value, inputs: Value) -> None:
        """sums[i] += weights * inputs."""
        if self.way == AVX512_VNNI:
            self.sums[i] = self.e.call("llvm.x86.avx512.vpdpbusd.512", V16I32, self.sums[i], weights, inputs)
        elif self.way == AVX_VNNI:
            self.sums[i] = by_half(
                self.e, "llvm.x86.avx512.vpdpbusd.256", V8I32, self.sums[i], weights, inputs
            )
        elif self.room:
            w, x = (v.to("bitcast", V64I8) for v in (weights, inputs))
            self.pairs[i].append(by_half(self.e, "llvm.x86.avx2.pmadd.ub.sw", V16I16, w, x))
            if len(self.pairs[i]) == self.room:
                self._widen(i)
        else:  # even and odd bytes as int16
            w, x = (v.to("bitcast", V32I16) for v in (weights, inputs))
            even, odd = self._neighbours(w & 255, (x << 8).ashr(8)), self._neighbours(w >> 8, x.ashr(8))
            self.sums[i] = self.sums[i] + even + odd

    def result(self) -> list[Value]:
        for i in range(len(self.sums)):
            self._widen(i)
        return self.sums

    def _widen(self, i: int) -> None:
        """Move the int16 sums over."""
        if self.pairs[i]:
            first, *others = self.pairs[i]
            for other in others:
                first = first + other
            self.sums[i] = self.sums[i] + self._neighbours(first, self.e.value(V32I16, 1))
            self.pairs[i] = []

    def _neighbours(self, x: Value, y: Value) -> Value:
        """32 products of int16, two neighbours added."""
        if self.way == AVX2:
            return by_half(self.e, "llvm.x86.avx2.pmadd.wd", V8I32, x, y)
        even, odd = ([self.e.shuffle(v, range(h, 32, 2)).to("sext", V16I32) for v in (x, y)] for h in (0, 1))
        return even[0] * even[1] + odd[0] * odd[1]
