"""The compiled packing against numpy's, bit for bit, and matrices that were taken apart and put together."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import psutil
import pytest
import torch

from kernels import Dense, Int4, Int4K, Int4T, Int6, Int8, Pieces, Stored, Weight
from kernels.cpu.layout import GROUP, ROWS, SPAN, SUPER
from kernels.cpu.ops import CpuOps
from kernels.cpu.packing import OWN_MAPPING, PackedStorage, format_of, pack, zeros
from kernels.cpu.plain_packing import fill_plainly
from tests.kernels.random_weights import random_weight

KINDS = [Int4, Int4K, Int4T, Int6, Int8, Dense]


def stream(weight: Weight) -> np.ndarray:
    """A matrix as its stream, uint8 [pairs, supers, SUPER]."""
    rows, width = weight.shape
    fmt = format_of(weight)
    out = np.zeros((-(-rows // ROWS), -(-width // GROUP) // SPAN[fmt], SUPER[fmt]), np.uint8)
    fill_plainly(fmt, out, weight)
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [32, 96, 45, 5])
@pytest.mark.parametrize("width", [256, 768])
def test_a_stream_is_its_twin_s(kind: type, rows: int, width: int) -> None:
    weight = random_weight(kind, rows, width)
    (part,) = pack([weight], None, False).parts
    assert np.array_equal(part.data, stream(weight))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [64, 72, 8])
def test_floats_of_any_type_and_width_are_rounded_alike(dtype: torch.dtype, width: int) -> None:
    values = torch.randn(40, width) * torch.logspace(-6, 4, 40)[:, None]
    values[3], values[4, 5] = 0, 30000
    weight = Dense(values.to(dtype))
    assert np.array_equal(pack([weight], None, False).parts[0].data, stream(weight))


@pytest.mark.parametrize("size", [1, 100, OWN_MAPPING - 1, OWN_MAPPING, 3 * OWN_MAPPING])
def test_zeros(size: int) -> None:
    found = zeros(2, size)
    assert found.shape == (2, size) and not found.any()
    assert found.ctypes.data % 64 == 0 and found.flags.writeable


def test_large_zeros_take_no_memory_until_they_are_written() -> None:
    """Where the heap would give what it has, and write it."""
    used = np.ones(64 << 20, np.uint8)
    del used
    before = psutil.Process().memory_info().rss
    found = zeros(64 << 20)
    assert psutil.Process().memory_info().rss - before < 8 << 20
    found[:] = 1
    assert psutil.Process().memory_info().rss - before > 56 << 20


@pytest.mark.parametrize("kind", KINDS)
def test_stacked_and_interleaved(kind: type) -> None:
    first, second = (random_weight(kind, 64, 256) for _ in range(2))
    (stacked,) = pack([first, second], None, False).parts
    assert np.array_equal(stacked.data, np.concatenate([stream(first), stream(second)]))
    (gated,) = pack([first, second], None, True).parts
    assert np.array_equal(gated.data[0::2], stream(first))
    assert np.array_equal(gated.data[1::2], stream(second))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gated", [False, True])
def test_in_pieces_it_is_the_same(kind: type, gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.cpu.packing.PIECE", 2 * ROWS * 256)
    pair = [random_weight(kind, 160, 256) for _ in range(2)]
    asked: list[int] = []

    def cut(weight: Weight) -> Pieces:
        def make(begin: int, end: int) -> Weight:
            asked.append(end - begin)
            parts = {name: getattr(weight, name) for name in weight.__dataclass_fields__}
            rows = {name: part[begin:end] for name, part in parts.items() if isinstance(part, torch.Tensor)}
            return replace(weight, **rows)

        return Pieces(weight.shape, make)

    (expected,) = pack(pair, None, gated).parts
    (found,) = pack([cut(weight) for weight in pair], None, gated).parts
    assert np.array_equal(found.data, expected.data) and max(asked) == 2 * ROWS


def test_taken_apart_and_put_together() -> None:
    storage, bias = PackedStorage(), torch.randn(96)
    mixed = [random_weight(Int4K, 64, 256), random_weight(Int6, 32, 256)]
    for packed in (pack(mixed, bias, False), pack(mixed[:1] * 2, None, True), pack([mixed[1]], None, False)):
        stored = storage.take_apart(packed)
        facts = json.loads(json.dumps(stored.facts))
        again = storage.put_together(Stored(facts, stored.arrays))
        assert (again.shape, again.gated) == (packed.shape, packed.gated)
        assert again.bias is packed.bias
        for one, other in zip(again.parts, packed.parts, strict=True):
            assert (one.fmt, one.rows, one.groups) == (other.fmt, other.rows, other.groups)
            assert one.data is other.data


def test_arrays_that_do_not_fit_are_refused() -> None:
    stored = PackedStorage().take_apart(pack([random_weight(Int8, 64, 256)], None, False))
    bias, data = stored.arrays
    for arrays in ((bias, data[:1]), (bias, data[:, :, 1:]), (bias,), (bias, data, data)):
        with pytest.raises(ValueError, match=r"."):
            PackedStorage().put_together(Stored(stored.facts, arrays))


def test_the_backend_can_keep_what_it_packs() -> None:
    assert CpuOps.storage is not None and CpuOps.storage.layout == PackedStorage.layout
