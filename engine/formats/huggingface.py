"""Matrices of folder checkpoints: which scheme stored one is seen by its tensors' endings and types.

So layers that a quantizer left alone need no list of names: they have a plain ".weight". The config's
quantization_config says only what shapes do not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from kernels import Dense, Int4T, Weight, pack_nibbles

from ..config import MADE_ELSEWHERE
from ..errors import UnsupportedModel
from .compressed import from_bytes, from_fp8, from_packed
from .gptq import from_awq, from_gptq
from .numbers import as_stored, halves_of_powers
from .stored import FLOATS, Stored, find, quantization_of

METHODS = ("gptq", "awq", "compressed-tensors", "fp8", "fbgemm_fp8", "mxfp4")
LAYOUTS = (
    "dense",
    "pack-quantized",
    "int-quantized",
    "float-quantized",
    "naive-quantized",
    "mixed-precision",
)


def check_quantization(metadata: Mapping[str, Any], wanted: str = "auto") -> None:
    """Raise UnsupportedModel for a quantization that is not served, by its name, or is not the wanted one."""
    config = quantization_of(metadata)
    method = str(config.get("quant_method") or "")
    if wanted in MADE_ELSEWHERE and wanted != method:
        found = f"these are {method[:40]}" if method else "these do not say so"
        raise UnsupportedModel(
            f"Only a model's own files can be {wanted}, and {found}; choose auto, or its {wanted} edition."
        )
    if config and method not in METHODS:
        raise UnsupportedModel(
            f"The model is quantized with {method[:40] or 'an unnamed method'}, which is not served; its "
            f"edition as GGUF or with one of these is: {', '.join(METHODS)}."
        )
    layout = str(config.get("format") or "dense")
    if method == "compressed-tensors" and layout not in LAYOUTS:
        raise UnsupportedModel(
            f"The model's compressed-tensors layout is {layout[:40]}, which is not served; these are: "
            f"{', '.join(LAYOUTS)}."
        )


def to_matrix(stored: Stored) -> Weight:
    """The matrix, by the scheme that its tensors show."""
    check_quantization(stored.checkpoint.metadata)
    for ending, convert in ENDINGS.items():
        if stored.has(ending):
            return convert(stored)
    return _plain(stored)


def _integers(stored: Stored) -> Weight:
    said = stored.quantization  # GPTQModel calls AWQ's packing "gptq" where it only rounded
    awq = said.get("quant_method") == "awq" or said.get("checkpoint_format") == "gemm"
    return from_awq(stored) if awq else from_gptq(stored)


def _plain(stored: Stored) -> Weight:
    """ ".weight", or for a stack of experts the bare name."""
    ending = ".weight" if stored.expert is None or stored.has(".weight") else ""
    info = find(stored.checkpoint, stored.name + ending, tuple(PLAIN) + FLOATS)
    if info.type in PLAIN:
        return PLAIN[info.type](stored)
    return Dense(stored.floats(ending))


def _from_mxfp4(stored: Stored) -> Weight:
    """gpt-oss: blocks [N, K / 32, 16] of two neighbouring values a byte, scales [N, K / 32]: 2^(e - 127)."""
    groups = stored.shape[1] // 32
    packed = stored.picked(stored.tensor("_blocks", ("U8",), (stored.num_rows, groups, 16)))
    exponents = stored.tensor("_scales", ("U8",), (stored.num_rows, groups))
    neighbours = torch.stack([packed & 15, packed >> 4], -1).flatten(1)
    scale = halves_of_powers(stored.picked(exponents))
    return Int4T(pack_nibbles(neighbours), as_stored(scale), "fp4")


PLAIN: dict[str, Callable[[Stored], Weight]] = {"F8_E4M3": from_fp8, "I8": from_bytes}
ENDINGS: dict[str, Callable[[Stored], Weight]] = {
    ".qweight": _integers,
    ".weight_packed": from_packed,
    "_blocks": _from_mxfp4,
}
