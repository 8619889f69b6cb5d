"""On which device a model runs and with which kernels, from what the machine has and what the settings say.

A card is taken by itself only where its check passed (card_check.py); a backend that is named in the settings
is taken at its word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import kernels

from ..config import EngineConfig
from ..errors import BadRequest, UnsupportedModel
from ..formats import QUANTIZERS
from ..models import ModelConfig
from .abilities import CARDS, PROCESSOR, SERVED, DeviceFacts
from .cores import threads_for
from .device import detect

# a backend that is named -> kinds of device it is for
SERVED_BY = {"triton": ("cuda", "rocm"), "numba": (PROCESSOR,), "reference": (PROCESSOR,)}


def place(
    config: EngineConfig, model: ModelConfig, tell: Callable[[], None] = lambda: None
) -> tuple[DeviceFacts, kernels.Ops]:
    """The device for a model, with the memory that is free on it now, and its kernels. A card that was never
    checked is, which takes up to a minute; `tell` is called before. Raises BadRequest, UnsupportedModel.
    """
    served = (PROCESSOR,) if model.borrowed else SERVED_BY.get(config.backend, SERVED)
    device = detect(served=served, check=config.backend == "auto", tell=tell)
    return device, select_ops(config, model, device)


def select_ops(config: EngineConfig, model: ModelConfig, device: DeviceFacts) -> kernels.Ops:
    """The kernels for a model, and the threads of torch. A borrowed one takes no other than plain torch's."""
    if not model.borrowed:
        torch.set_num_threads(1)  # torch's own pool spins beside ours and halves its speed
        if config.backend == "triton" and device.kind not in CARDS:
            raise BadRequest(
                "backend is triton, which needs a card of NVIDIA or AMD; none is seen. Set auto."
            )
        on_card = device.kind in CARDS
        options = backend_options(config, on_card)
        return kernels.select("cuda" if on_card else "cpu", config.backend, **options)
    if config.backend not in ("auto", "reference") or config.quantization in QUANTIZERS:
        raise UnsupportedModel(
            f"{model.family.name}, is computed in plain torch with its weights as they are; choose auto for "
            "backend and quantization."
        )
    torch.set_num_threads(threads_for(config.threads))
    options = {"kv_dtype": model.borrowed.dtype} | backend_options(replace(config, backend="reference"))
    return kernels.select("cpu", "reference", **options)


def backend_options(config: EngineConfig, on_card: bool = False) -> dict[str, Any]:
    """What kernels.select is told of the settings."""
    options: dict[str, Any] = {}
    if not on_card and config.backend not in ("reference", "triton"):
        options["threads"] = threads_for(config.threads)
    if config.kv_dtype != "auto":
        options["kv_dtype"] = getattr(torch, config.kv_dtype)
    return options
