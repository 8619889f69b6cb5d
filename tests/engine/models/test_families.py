"""Every family against transformers' own forward pass: from the folder that it saved, and from GGUF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import kernels
from engine.checkpoints import open_checkpoint
from engine.fitting.choice import FORMATS
from engine.inspection import shape_of
from engine.models import load_decoder, read_config
from engine.models.families import GGUF_FAMILIES, HF_FAMILIES
from engine.running.forward import Forward
from engine.running.kv_cache import kind_facts
from kernels import Ops
from tests.source_tree import ROOT

from .family_gguf import write_gguf
from .tiny_families import FAMILIES, logits_of, make_model, save, text

CONTEXT = 8  # blocks of 16 tokens


@pytest.fixture(scope="module")
def numba() -> Iterator[Ops]:
    ops = kernels.select("cpu", "numba", threads=2)
    yield ops
    ops.close()


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_transformers_own(tmp_path: Path, name: str) -> None:
    model = make_model(name)
    forward = Forward.of(save(model, tmp_path), kernels.select("cpu", "reference"), num_blocks=CONTEXT)
    check(forward, model, text(model))


# llama.cpp has no keys for these; and it knows by itself by what Gemma's queries are scaled
NO_GGUF = {"mistral-windowed", "qwen2-windowed"}
CHANGES = {"gemma2": {"query_pre_attn_scalar": 32}, "gemma3": {"query_pre_attn_scalar": 32}}


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NO_GGUF])
def test_logits_are_the_same_from_gguf(tmp_path: Path, name: str) -> None:
    model = make_model(name, **CHANGES.get(name, {}))
    path = write_gguf(model, save(model, tmp_path), tmp_path / "tiny.gguf")
    check(Forward.of(path, kernels.select("cpu", "reference"), num_blocks=CONTEXT), model, text(model))


def check(forward: Forward, model: Any, tokens: list[int]) -> None:
    """A prompt and then token by token, so that windows slide over what is in the cache."""
    theirs, blocks = logits_of(model, tokens), list(range(1, 1 + len(tokens) // 16 + 1))
    assert theirs.std() > 0.1, "the model says something"
    (first,) = forward((tokens[:30], 0, blocks))
    rest = [forward(([token], 30 + i, blocks))[0] for i, token in enumerate(tokens[30:])]
    assert (torch.cat([first, *rest]) - theirs).abs().max() < 1e-4


def test_a_longrope_loaded_for_a_long_context_takes_its_long_factors(tmp_path: Path) -> None:
    model = make_model("phi3-long")
    forward = Forward.of(save(model, tmp_path), kernels.select("cpu", "reference"), num_blocks=16)
    check(forward, model, text(model, 150))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_processors_kernels(tmp_path: Path, name: str, numba: Ops) -> None:
    """Weights and activations are rounded to int8, a mixture's router may choose others: so the logits of a
    random model are only roughly the same. But token by token they have the bits that they have as a prompt.
    """
    model = make_model(name)
    forward = Forward.of(save(model, tmp_path), numba, num_blocks=CONTEXT)
    tokens, blocks = text(model), list(range(1, CONTEXT))
    theirs = logits_of(model, tokens)
    (whole,) = forward((tokens, 0, blocks))
    error = (whole - theirs).square().mean().sqrt() / theirs.std()
    assert error < (0.4 if forward.model.config.mixture else 0.15)
    (first,) = forward((tokens[:40], 0, blocks))
    rest = [forward(([token], 40 + i, blocks))[0] for i, token in enumerate(tokens[40:])]
    assert torch.equal(torch.cat([first, *rest]), whole)


@pytest.mark.parametrize("quantization,most", [("int8", 0.15), ("int4", 0.6), ("fp8", 0.3)])
def test_a_gemma_4_quantized_when_it_is_loaded(
    tmp_path: Path, quantization: str, most: float, numba: Ops
) -> None:
    model = make_model("gemma4-small")
    with open_checkpoint(save(model, tmp_path)) as checkpoint:
        config = read_config(checkpoint)
        loaded = load_decoder(checkpoint, config, numba, 16 * CONTEXT, lambda part: None, quantization)
    tokens = text(model)
    (found,) = Forward(loaded, numba, 512, CONTEXT)((tokens, 0, list(range(1, CONTEXT))))
    theirs = logits_of(model, tokens)
    assert (found - theirs).square().mean().sqrt() / theirs.std() < most


def test_of_a_gemma_4_s_table_of_inputs_a_token_reads_a_row(tmp_path: Path) -> None:
    model = make_model("gemma4-small")
    shape = shape_of(save(model, tmp_path), "small")
    sizes = {name: weight.numel() for name, weight in model.model.named_parameters()}
    assert shape.rows == sizes["embed_tokens_per_layer.weight"]
    assert shape.embeddings == shape.rows + sizes["embed_tokens.weight"]
    _, read = shape.held(FORMATS["GGUF Q8_0"], "cpu", 0)
    assert read == pytest.approx(shape.weights_bytes * (1 - shape.rows / shape.parameters))


def test_the_document_lists_what_is_served() -> None:
    rows = re.findall(
        r"^\|[^|]+\| `(\w+)` \| `([\w-]+)` \|", (ROOT / "docs/MODELS.md").read_text("utf-8"), re.M
    )
    assert {kind for kind, _ in rows} == set(HF_FAMILIES)
    assert {architecture for _, architecture in rows} == set(GGUF_FAMILIES)


def test_a_gemma_4_that_sees_and_hears_is_its_text_half(tmp_path: Path) -> None:
    """As it is published: among images and sound, with keys and values that nobody looks at."""
    from transformers import Gemma4Config, Gemma4ForConditionalGeneration

    text_model = make_model("gemma4-small")
    small = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2, "num_hidden_layers": 1}
    others = {
        "vision_config": small | {"num_key_value_heads": 2, "head_dim": 16, "position_embedding_size": 64},
        "audio_config": small,
    }
    tokens = {f"{kind}_token_id": 150 + i for i, kind in enumerate(("image", "video", "audio"))}
    config = Gemma4Config(text_config=text_model.config, **others, **tokens, attn_implementation="eager")
    whole = Gemma4ForConditionalGeneration(config).eval()
    whole.model.language_model.load_state_dict(text_model.model.state_dict())
    folder = save(whole, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    left = "model.language_model.layers.7.self_attn.{}.weight"
    left_over = {left.format(part): torch.ones(2 * 48, 64) for part in ("k_proj", "v_proj")}
    save_file(tensors | left_over | {left.format("k_norm"): torch.ones(48)}, folder / "model.safetensors")
    assert any("vision" in name for name in tensors) and any("audio" in name for name in tensors)
    forward = Forward.of(folder, kernels.select("cpu", "reference"), num_blocks=CONTEXT)
    check(forward, text_model, text(text_model))


def test_layers_that_share_keys_and_values_take_no_memory(tmp_path: Path) -> None:
    """Of eight layers two of each kind have pages; heads are 32 and 48 wide."""
    folder = save(make_model("gemma4-small"), tmp_path)
    with open_checkpoint(folder) as checkpoint:
        kinds = kind_facts(read_config(checkpoint), torch.float32)
    assert [(facts.name, facts.layers) for facts in kinds] == [("full", (1, 3)), ("window", (0, 2))]
    assert [facts.bytes_per_token for facts in kinds] == [2 * 2 * 2 * 48 * 4, 2 * 2 * 2 * 32 * 4]


def test_gpt_oss_as_it_is_published(tmp_path: Path) -> None:
    """Its experts in MXFP4, which transformers makes floats of."""
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    model, generator = make_model("gpt-oss"), torch.Generator().manual_seed(5)
    packed = {}
    for name, experts in model.named_parameters():
        if name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            count, inputs, outputs = experts.shape
            shape = (count, outputs, inputs // 32)
            blocks = torch.randint(0, 256, (*shape, 16), generator=generator, dtype=torch.uint8)
            scales = torch.randint(120, 124, shape, generator=generator, dtype=torch.uint8)
            experts.data = convert_moe_packed_tensors(blocks.clone(), scales.clone(), dtype=torch.float32)
            packed |= {f"{name}_blocks": blocks, f"{name}_scales": scales}
    folder = save(model, tmp_path)
    tensors = load_file(folder / "model.safetensors")
    kept = {name: values for name, values in tensors.items() if f"{name}_blocks" not in packed}
    save_file(kept | packed, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": []}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    forward = Forward.of(folder, kernels.select("cpu", "reference"), num_blocks=CONTEXT)
    check(forward, model, text(model))
