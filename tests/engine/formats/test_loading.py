"""Whole models in each scheme of folders: transformers' logits, with the weights that the scheme means."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

import kernels
from engine.checkpoints import open_checkpoint
from engine.formats import QUANTIZERS, quantize
from engine.models import load_decoder, read_config
from engine.running.forward import Forward
from kernels import Dense, Ops
from tests.engine.formats.folders import pack_words
from tests.engine.models.tiny_families import logits_of, make_model, save, text

GROUP = 32
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
Made = tuple[dict[str, Tensor], Tensor]  # tensors by their endings, and the matrix that they mean


def integers(weight: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Values [N, K], scales and zeros [N, G], and the matrix that they mean."""
    groups, top = weight.view(len(weight), -1, GROUP), 2**bits - 1
    least, most = groups.amin(-1, keepdim=True), groups.amax(-1, keepdim=True)
    scale = ((most - least) / top).half().float()
    zero = (-least / scale).round().clamp(1, top)
    values = (groups / scale + zero).round().clamp(0, top)
    true = (scale * (values - zero)).view(weight.shape)
    return values.view(weight.shape).int(), scale[..., 0], zero[..., 0].int(), true


def gptq(weight: Tensor) -> Made:
    values, scale, zero, true = integers(weight, 4)
    packed = {
        "qweight": pack_words(values, 4).T,
        "qzeros": pack_words(zero.T - 1, 4),
        "scales": scale.T.half(),
    }
    return packed | {"g_idx": torch.arange(weight.shape[1]).int() // GROUP}, true


def awq(weight: Tensor) -> Made:
    def packed(by_row: Tensor) -> Tensor:
        return pack_words(by_row.reshape(len(by_row), -1, 8)[:, :, AWQ_ORDER].flatten(1), 4)

    values, scale, zero, true = integers(weight, 4)
    return {"qweight": packed(values.T), "qzeros": packed(zero.T), "scales": scale.T.half()}, true


def compressed(weight: Tensor) -> Made:
    values, scale, zero, true = integers(weight, 4)
    stored = {"weight_packed": pack_words(values, 4), "weight_scale": scale.half()}
    return stored | {"weight_zero_point": pack_words(zero.T, 4).T}, true


def bytes_by_row(weight: Tensor) -> Made:
    scale = (weight.abs().amax(1, keepdim=True) / 127).bfloat16()
    values = (weight / scale.float()).round().clamp(-128, 127)
    return {"weight": values.to(torch.int8), "weight_scale": scale}, values * scale.float()


def fp8_blocks(weight: Tensor) -> Made:
    """Blocks of 32 x 32."""
    n, k = (size // 32 for size in weight.shape)
    blocks = weight.view(n, 32, k, 32)
    scale = blocks.abs().amax((1, 3), keepdim=True) / 448
    values = (blocks / scale).to(torch.float8_e4m3fn)
    true = (values.float() * scale).view(weight.shape)
    return {"weight": values.view(weight.shape), "weight_scale_inv": scale.view(n, k)}, true


Scheme = tuple[Callable[[Tensor], Made], dict[str, Any]]
SCHEMES: dict[str, Scheme] = {
    "gptq": (gptq, {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True}),
    "awq": (awq, {"quant_method": "awq", "bits": 4, "group_size": GROUP, "version": "gemm"}),
    "packed": (compressed, {"quant_method": "compressed-tensors", "format": "pack-quantized"}),
    "bytes": (bytes_by_row, {"quant_method": "compressed-tensors", "format": "int-quantized"}),
    "fp8": (fp8_blocks, {"quant_method": "fp8", "weight_block_size": [32, 32]}),
}


def quantized_folder(name: str, scheme: str, folder: Path) -> Any:
    """A tiny model's folder with all matrices of its layers in the scheme; the model gets what they mean."""
    make, config = SCHEMES[scheme]
    model = make_model(name)
    save(model, folder)
    tensors = load_file(folder / "model.safetensors")
    for parameter_name, parameter in model.named_parameters():
        if ".layers." in parameter_name and parameter.dim() == 2:
            stored, true = make(tensors.pop(parameter_name))
            stem = parameter_name.removesuffix(".weight")
            tensors |= {f"{stem}.{ending}": tensor.contiguous() for ending, tensor in stored.items()}
            with torch.no_grad():
                parameter.copy_(true)
    save_file(tensors, folder / "model.safetensors")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"quantization_config": config}))
    return model


def logits(folder: Path, model: Any, ops: Ops) -> tuple[Tensor, Tensor]:
    """Ours and transformers', of every token."""
    tokens = text(model)
    (ours,) = Forward.of(folder, ops, num_blocks=8)((tokens, 0, range(1, 6)))
    return ours, logits_of(model, tokens)


@pytest.mark.parametrize("name", ["llama", "phi3"])  # phi3 keeps q, k and v in one matrix, gate and up, too
@pytest.mark.parametrize("scheme", SCHEMES)
def test_logits_are_those_of_the_weights_it_means(tmp_path: Path, name: str, scheme: str) -> None:
    model = quantized_folder(name, scheme, tmp_path)
    ours, theirs = logits(tmp_path, model, kernels.select("cpu", "reference"))
    assert (ours - theirs).abs().max() < 1e-4


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_processor_computes_with_them(tmp_path: Path, scheme: str) -> None:
    """Activations are rounded to 8 bits there, which a random model magnifies."""
    model = quantized_folder("llama", scheme, tmp_path)
    ops = kernels.select("cpu", "numba", threads=2)
    try:
        ours, theirs = logits(tmp_path, model, ops)
    finally:
        ops.close()
    assert (ours - theirs).std() < 0.08 * theirs.std()


@pytest.mark.parametrize("to", QUANTIZERS)
def test_unquantized_layers_are_quantized_when_they_are_loaded(tmp_path: Path, to: str) -> None:
    """Not the embedding and the head, where errors cost most."""
    model, ops = make_model("llama"), kernels.select("cpu", "reference")
    with open_checkpoint(save(model, tmp_path)) as checkpoint:
        decoder = load_decoder(checkpoint, read_config(checkpoint), ops, 64, lambda part: None, to)
    down = model.model.layers[0].mlp.down_proj.weight.data
    assert torch.equal(decoder.layers[0].feed_forward[1].matrix, quantize(Dense(down), to).dequantize())
    assert torch.equal(decoder.embedding.matrix, model.model.embed_tokens.weight)
    assert torch.equal(decoder.head.matrix, model.lm_head.weight)
