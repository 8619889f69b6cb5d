"""What a card goes through before it is used: sound kernels pass, and each that is broken is named."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels.triton import TritonOps, self_test
from kernels.triton.sampling import Sampler
from kernels.triton.self_test import PARTS, faults


def test_sound_kernels_pass() -> None:
    assert not list(faults("cpu"))


def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A product a little too large, attention that leaves rows unwritten, any draw, no gate at all."""
    attention, norm_linear = TritonOps.attention, TritonOps.norm_linear

    def larger(ops: TritonOps, batch: Any, hidden: Any, norm: Any, weight: Any, out: torch.Tensor) -> None:
        norm_linear(ops, batch, hidden, norm, weight, out)
        out.mul_(1.05)

    def unwritten(ops: TritonOps, batch: Any, q: Any, kv: Any, out: torch.Tensor) -> None:
        attention(ops, batch, q, kv, out)
        out[-1] = torch.nan

    def refused(*given: Any, **more: Any) -> None:
        raise RuntimeError("Triton Error [CUDA]: no kernel image\nand more")

    monkeypatch.setattr(TritonOps, "norm_linear", larger)
    monkeypatch.setattr(TritonOps, "attention", unwritten)
    monkeypatch.setattr(TritonOps, "norm_gated_linear", refused)
    monkeypatch.setattr(Sampler, "sample", lambda sampler, logits, out: out.fill_(1))
    names = ("dense products", "gates", "a prompt's attention", "draws")
    monkeypatch.setattr(self_test, "PARTS", {name: PARTS[name] for name in names})
    products, gates, prompts, draws = faults("cpu")
    assert products.startswith("dense products (off by 0.05") and prompts == f"{names[2]} (off by nan)"
    assert gates == "gates (RuntimeError: Triton Error [CUDA]: no kernel image)"
    assert draws.startswith("draws (off by ")
