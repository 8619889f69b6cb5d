"""GPTQ and AWQ: 4 or 8 bits in words of 32, a scale and a zero point per group of inputs.

    GPTQ   qweight [K * bits / 32, N]: a word holds neighbouring inputs; g_idx [K]: the group of each input
    AWQ    qweight [K, N / 8]: a word holds neighbouring rows, in the order of AWQ_ORDER
    both   scales [G, N], qzeros [G, N * bits / 32]: a word holds neighbouring rows, as qweight's does in AWQ

Bits and groups are read off the shapes. Published in AutoGPTQ (qlinear_cuda.py) and AutoAWQ (gemm.py): GPTQ's
first form stores zero - 1, its second ("gptq_v2") zero itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kernels import Weight

from .integers import from_integers, unpack
from .stored import FLOATS, Stored

AWQ_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # in which nibble of a word each of its eight rows is
GPTQ_FORMS = {"gptq": 1, "gptq_v2": 0}  # what is to be added to a stored zero


def from_gptq(stored: Stored) -> Weight:
    """See the module. Other packings of the same name (marlin ...) raise UnsupportedModel."""
    form = str(stored.quantization.get("checkpoint_format") or "gptq")
    if form not in GPTQ_FORMS:
        raise stored.refuse(
            f"is packed as {form[:40]!r}, which is not served; these are: {', '.join(GPTQ_FORMS)}"
        )
    inputs = stored.shape[1]
    packed = stored.tensor(".qweight", ("I32",), (None, stored.num_rows))
    words, rows = packed.shape
    bits = _bits(stored, words, inputs)
    scale, zero = _scales_and_zeros(stored, rows, bits)
    group_of = stored.tensor(".g_idx", ("I32", "I64"), (inputs,)) if stored.has(".g_idx") else None
    values = unpack(stored.picked(packed.T), bits)
    zero = unpack(zero, bits).T.short() + GPTQ_FORMS[form]
    return from_integers(values, stored.picked(scale.T), stored.picked(zero), bits, group_of)


def from_awq(stored: Stored) -> Weight:
    """See the module. Other versions than "gemm" raise UnsupportedModel."""
    said = stored.quantization
    version = str(said.get("version") or said.get("checkpoint_format") or "gemm").lower()
    if version != "gemm":
        raise stored.refuse(f"is packed as AWQ's {version[:40]!r}, which is not served; 'gemm' is")
    inputs, rows = stored.shape[1], stored.num_rows
    packed = stored.tensor(".qweight", ("I32",), (inputs, None if rows is None else rows // 8))
    scale, zero = _scales_and_zeros(stored, packed.shape[1] * 8, 4)
    values, zero = (_in_awq_order(unpack(x, 4)).T for x in (packed, zero))
    return from_integers(stored.picked(values), stored.picked(scale.T), stored.picked(zero), 4)


def _bits(stored: Stored, words: int, inputs: int) -> int:
    bits = words * 32 / inputs
    if bits not in (4, 8):
        raise stored.refuse(f"has {words} words for {inputs} inputs, {bits:g} bits each; 4 and 8 are served")
    return int(bits)


def _scales_and_zeros(stored: Stored, rows: int, bits: int) -> tuple[Tensor, Tensor]:
    """[G, N] and [G, words]."""
    scale = stored.tensor(".scales", FLOATS, (None, rows))
    return scale, stored.tensor(".qzeros", ("I32",), (len(scale), rows * bits // 32))


def _in_awq_order(values: Tensor) -> Tensor:
    """[n, rows] as they are in the words -> in order."""
    return values.view(len(values), -1, 8)[:, :, torch.tensor(AWQ_ORDER)].flatten(1)
