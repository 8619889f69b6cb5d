"""config.json to a ModelConfig: old and new spellings, what may be left out, what is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoints import TensorInfo
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.models import ModelConfig, read_config
from engine.models.rope import linear, llama3, longrope, plain, yarn

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "dtype": "bfloat16",
    "architectures": ["LlamaForCausalLM"],
}
GEMMA3 = LLAMA | {"model_type": "gemma3_text", "head_dim": 32, "num_hidden_layers": 7, "sliding_window": 24}


def config_of(config: dict[str, Any], names: tuple[str, ...] = ()) -> ModelConfig:
    """A config.json with the tensors that its layers begin with."""
    layers = config.get("num_hidden_layers")
    count = layers if type(layers) is int and 0 < layers < 50 else 4
    names = (
        "model.norm.weight",
        *(f"model.layers.{i}.self_attn.q_proj.weight" for i in range(count)),
        *names,
    )
    tensors = {name: TensorInfo(name, (64,), "F32", 0, 256) for name in names}
    tensors["model.embed_tokens.weight"] = TensorInfo("", (100, 64), "F32", 0, 0)

    class Checkpoint:
        path, source, metadata = Path("some-folder"), "hf", config

    Checkpoint.tensors = tensors  # type: ignore[attr-defined]
    return read_config(Checkpoint())  # type: ignore[arg-type]


GEMMA4 = LLAMA | {
    "model_type": "gemma4_text",
    "head_dim": 16,
    "global_head_dim": 32,
    "sliding_window": 24,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
    "hidden_size_per_layer_input": 0,
}


def test_a_gemma_4() -> None:
    """Kinds of layers have heads of their own widths; the last two look at the pages of the first two."""
    config = config_of(GEMMA4 | {"num_kv_shared_layers": 2, "use_double_wide_mlp": True})
    assert [config.sizes(i) for i in range(4)] == [(2, 16, 128), (2, 32, 128), (2, 16, 256), (2, 32, 256)]
    assert [layer.source for layer in config.layers] == [None, None, 0, 1]
    assert [layer.window for layer in config.layers] == [24, 0, 24, 0]
    assert "k" in config.parts(1) and not {"k", "v", "k_norm"} & set(config.parts(3))
    assert (config.score_scale, config.input_size, config.mixture) == (1.0, 0, None)
    turned = [frequency > 0 for frequency in config.layers[1].rope.frequencies]
    assert turned == [True] * 4 + [False] * 12  # a quarter of its pairs


def test_a_gemma_4_whose_keys_are_values() -> None:
    said = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
    config = config_of(GEMMA4 | said)
    assert [config.sizes(i)[0] for i in range(4)] == [2, 1, 2, 1]
    assert [layer.without & {"k", "v"} for layer in config.layers] == [set(), {"v"}] * 2
    own = {"per_layer_config": {"1": {"head_dim": 48}, "3": {"head_dim": 48, "num_key_value_heads": 4}}}
    assert [config_of(GEMMA4 | own).sizes(i)[:2] for i in (1, 3)] == [(2, 48), (4, 48)]


@pytest.mark.parametrize(
    "changes,message",
    [
        ({"num_kv_shared_layers": 4}, "num_kv_shared_layers is 4; it must be a whole number from 1 to 3"),
        ({"num_kv_shared_layers": 3}, "num_kv_shared_layers is 3; it must be such that layer 1 has one"),
        ({"num_kv_shared_layers": -1}, "num_kv_shared_layers is -1"),
        ({"global_head_dim": 40}, "its heads are 40 wide"),
        ({"global_head_dim": 0}, "global_head_dim is 0"),
        ({"per_layer_config": {"1": {"window": 3}}}, "per_layer_config is"),
        ({"per_layer_config": 3}, "per_layer_config is 3"),
        ({"attention_k_eq_v": True, "num_global_key_value_heads": 3}, "such that 3 divides 4"),
        ({"use_bidirectional_attention": "all"}, "use_bidirectional_attention is 'all'"),
        ({"vocab_size_per_layer_input": 50, "hidden_size_per_layer_input": 16}, "vocab_size_per_layer_input"),
        ({"enable_moe_block": True}, "num_local_experts is missing"),
        ({"layer_types": ["linear_attention"] * 4}, "layer_types has 'linear_attention'"),
    ],
)
def test_a_gemma_4_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((BadCheckpoint, UnsupportedModel), match=message):
        config_of(GEMMA4 | changes)


def ropes(config: dict[str, Any]) -> list[Any]:
    return [layer.rope for layer in config_of(config).layers]


def test_a_plain_llama() -> None:
    config = config_of(LLAMA)
    assert (config.num_layers, config.head_dim, config.windows, config.tied_head) == (4, 16, (0,), True)
    assert ropes(LLAMA) == [plain(10000.0, 16)] * 4


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
LONG = {"short_factor": [1.0] * 8, "long_factor": [2.0] * 8}
SCALINGS = [
    ({}, plain(5e5, 16)),
    ({"type": "linear", "factor": 4.0}, linear(5e5, 16, 4.0)),
    ({"rope_type": "linear", "factor": 4}, linear(5e5, 16, 4.0)),
    (
        {"rope_type": "llama3", "original_max_position_embeddings": 128} | LLAMA3,
        llama3(5e5, 16, 8, 1, 4, 128),
    ),
    ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}, yarn(5e5, 16, 4.0, 128)),
    (
        {"type": "longrope", "original_max_position_embeddings": 128, "attention_factor": 1.2} | LONG,
        longrope(5e5, 16, [1.0] * 8, [2.0] * 8, 128, 1.2),
    ),
]


@pytest.mark.parametrize("scaling,wanted", SCALINGS)
def test_a_rope_in_its_old_and_its_new_spelling(scaling: dict[str, Any], wanted: Any) -> None:
    old = LLAMA | {"rope_theta": 5e5, "rope_scaling": scaling or None}
    new = LLAMA | {"rope_parameters": {"rope_theta": 5e5} | scaling}
    assert ropes(old) == ropes(new) == [wanted] * 4


def test_gemma_turns_layers_with_a_window_by_a_rope_of_their_own() -> None:
    config = config_of(GEMMA3 | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}})
    local, far = plain(10000.0, 32), linear(1e6, 32, 8.0)
    assert [layer.rope for layer in config.layers] == [local] * 5 + [far, local]
    assert [layer.window for layer in config.layers] == [24] * 5 + [0, 24]
    assert config.windows == (0, 24)
    assert config.embedding_scale == 8.0 and config.score_scale == pytest.approx(1 / 16)


WINDOWS = [
    ({"model_type": "mistral"}, [0] * 4),  # as long as the context: none
    ({"model_type": "mistral", "sliding_window": None}, [0] * 4),
    ({"model_type": "mistral", "sliding_window": 100}, [100] * 4),
    ({"model_type": "qwen2", "sliding_window": 100}, [0] * 4),
    ({"model_type": "qwen2", "sliding_window": 100, "use_sliding_window": True, "max_window_layers": 3},
     [0, 0, 0, 100]),
    ({"model_type": "gemma2", "head_dim": 16, "sliding_window": 100}, [100, 0, 100, 0]),
    ({"model_type": "qwen3", "head_dim": 16, "sliding_window": 9,
      "layer_types": ["full_attention", "sliding_attention"] * 2}, [0, 9, 0, 9]),
]  # fmt: skip


@pytest.mark.parametrize("changes,windows", WINDOWS)
def test_windows(changes: dict[str, Any], windows: list[int]) -> None:
    assert [layer.window for layer in config_of(LLAMA | changes).layers] == windows


def test_layers_that_are_told_no_positions() -> None:
    smollm3 = LLAMA | {"model_type": "smollm3"}
    assert [rope is None for rope in ropes(smollm3)] == [False, False, False, True]
    assert [rope is None for rope in ropes(smollm3 | {"no_rope_layers": [0, 1, 1, 0]})] == [
        True,
        False,
        False,
        True,
    ]


BAD = [
    ("num_hidden_layers", 0, "num_hidden_layers is 0"),
    ("num_hidden_layers", 1 << 19, "num_hidden_layers is 524288; it must be 4, as many layers have tensors"),
    ("num_hidden_layers", "4", "num_hidden_layers is '4'"),
    ("hidden_size", None, "hidden_size is missing"),
    ("num_attention_heads", 5, "num_key_value_heads is 2; it must be such that 2 divides 5"),
    ("num_key_value_heads", 3, "such that 3 divides 4"),
    ("rms_norm_eps", math.nan, "rms_norm_eps is nan"),
    ("rope_theta", 1.0, "rope_theta is 1.0; it must be a number above 1"),
    ("rope_scaling", [1], "rope_parameters is [1]; it must be a table"),
    ("rope_scaling", {"type": "linear"}, "factor is missing"),
    ("rope_scaling", {"type": "llama3", **LLAMA3, "high_freq_factor": 1.0}, "larger than low_freq_factor"),
    (
        "rope_scaling",
        {"type": "longrope", **LONG, "long_factor": [1.0]},
        "long_factor is [1.0]; it must be a list",
    ),
    ("partial_rotary_factor", 1e-9, "such that pairs are turned"),
    ("vocab_size", 99, "vocab_size is 99; it must be 100"),
    ("tie_word_embeddings", 1, "tie_word_embeddings is 1; it must be true or false"),
    ("tie_word_embeddings", False, "has no lm_head.weight"),
    ("layer_types", ["full_attention"], "one word for each layer"),
]


@pytest.mark.parametrize("key,value,text", BAD, ids=[f"{key} {value!r:.12}" for key, value, _ in BAD])
def test_what_makes_no_sense(key: str, value: Any, text: str) -> None:
    with pytest.raises(BadCheckpoint) as raised:
        config_of(LLAMA | {key: value})
    assert text in str(raised.value) and "some-folder" in str(raised.value)


UNSERVED = [
    ("model_type", "mamba", "its model_type is 'mamba'; it keeps more of a text than keys and values. These"),
    ("model_type", None, "its model_type is 'None'"),
    ("hidden_act", "relu", "hidden_act is 'relu'; these are served: silu"),
    (
        "rope_scaling",
        {"type": "dynamic", "factor": 2.0},
        "rope_type is 'dynamic'; these are served:",
    ),
    ("layer_types", ["linear_attention"] * 4, "layer_types has 'linear_attention'"),
    ("sliding_window", 100, "sliding_window is 100; only None is served"),
    ("clip_qkv", 8.0, "clip_qkv is 8.0; only None is served"),
    ("use_bidirectional_attention", True, "use_bidirectional_attention is True"),
    ("head_dim", 24, "its heads are 24 wide; only multiples of 16 are served"),
    ("num_attention_heads", [4, 4, 2, 4], "num_attention_heads differs from layer to layer"),
]


@pytest.mark.parametrize(
    "key,value,text", UNSERVED, ids=[f"{key} {value!r:.12}" for key, value, _ in UNSERVED]
)
def test_what_is_not_served(key: str, value: Any, text: str) -> None:
    with pytest.raises(UnsupportedModel) as raised:
        config_of(LLAMA | {key: value})
    assert text in str(raised.value) and "some-folder" in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["model.layers.0.self_attn.q_norm.weight", "model.layers.0.input_layernorm.bias", "score.weight",
     "model.layers.0.mlp.experts.0.gate_proj.weight", "model.layers.0.self_attn.sinks"],
)  # fmt: skip
def test_tensors_that_would_be_left_out_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedModel, match=name):
        config_of(LLAMA, (name,))


def test_quantized_matrices_are_known_by_their_names_without_the_ending() -> None:
    config_of(LLAMA, tuple(f"model.layers.0.mlp.up_proj.{end}" for end in ("qweight", "qzeros", "scales")))
    config_of(LLAMA, ("model.layers.0.self_attn.rotary_emb.inv_freq",))
