"""What a card goes through before it is used: sound kernels pass, and each that is broken is named."""

from __future__ import annotations

from subprocess import CalledProcessError
from typing import Any

import pytest
import torch

from kernels.triton import TritonOps, self_test
from kernels.triton.sampling import Sampler
from kernels.triton.self_test import PARTS, faults

SMALL = {"HEADS": 2, "KV_HEADS": 1, "WIDTH": 128, "GROUPS": 4, "VOCABULARY": 300}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part, in sizes that the interpreter is soon done with."""
    for name, value in SMALL.items():
        monkeypatch.setattr(self_test, name, value)
    monkeypatch.setattr(
        TritonOps,
        "sampler",
        lambda ops, *sizes: Sampler(ops.device, *sizes, tile=256, most=64, group=8),
    )


def test_sound_kernels_pass() -> None:
    assert not list(faults("cpu"))


@pytest.mark.parametrize(
    "problem",
    [CalledProcessError(1, ["gcc"]), RuntimeError("Failed to find C compiler. Please specify via CC.")],
    ids=str,
)
def test_a_machine_without_a_compiler_is_told_what_to_install(
    problem: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: Any) -> None:
        raise problem

    monkeypatch.setattr(TritonOps, "norm_linear", refused)
    with pytest.raises(RuntimeError, match="install gcc and python3-dev"):
        list(faults("cpu"))


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
    names = ("dense products", "gates", "a prompt's attention", "attention over 8 bits", "draws")
    monkeypatch.setattr(self_test, "PARTS", {name: PARTS[name] for name in names})
    products, gates, *attentions, draws = faults("cpu")
    assert products.startswith("dense products (off by 0.05")
    assert attentions == [f"{name} (off by nan)" for name in names[2:4]]
    assert gates == "gates (RuntimeError: Triton Error [CUDA]: no kernel image)"
    assert draws.startswith("draws (off by ")
