"""ModelConfig from metadata: the models' shapes, and every key that is missing, senseless or not served."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoints import TensorInfo, open_checkpoint
from engine.errors import BadCheckpoint, UnsupportedModel
from engine.models import ModelConfig, read_config
from engine.models.config import LayerConfig
from engine.models.families import LLAMA, Names
from engine.models.rope import plain
from tests.tiny_models import write_tiny_gguf

METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.feed_forward_length": 128,
    "llama.context_length": 512,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
}
NAMES = ["token_embd.weight", "output_norm.weight", *(f"blk.{i}.attn_q.weight" for i in range(2))]


class Checkpoint:
    """A checkpoint's metadata and tensor list, without a file."""

    path, source = Path("some.gguf"), "gguf"

    def __init__(self, changes: dict[str, Any], names: tuple[str, ...]) -> None:
        self.metadata = {k: v for k, v in (METADATA | changes).items() if v is not ABSENT}
        self.tensors = {name: TensorInfo(name, (3, 64), "F32", 0, 768) for name in [*NAMES, *names]}


ABSENT = object()


def config_of(changes: dict[str, Any] | None = None, names: tuple[str, ...] = ()) -> ModelConfig:
    checkpoint: Any = Checkpoint(changes or {}, names)
    return read_config(checkpoint)


def test_the_starter_model(starter_model: Path) -> None:
    with open_checkpoint(starter_model) as checkpoint:
        assert read_config(checkpoint) == ModelConfig(
            names=Names(LLAMA, "gguf"),
            layers=(LayerConfig(plain(100000.0, 64)),) * 30,
            hidden_size=576,
            num_heads=9,
            num_kv_heads=3,
            head_dim=64,
            ffn_size=1536,
            vocab_size=49152,
            context_length=8192,
            rms_eps=pytest.approx(1e-5),
            biased=frozenset(),
            tied_head=True,
        )


@pytest.mark.parametrize("architecture,tied", [("llama", True), ("qwen2", False)])
def test_tiny_models(tmp_path: Path, architecture: str, tied: bool) -> None:
    tiny = write_tiny_gguf(tmp_path / "tiny.gguf", architecture=architecture, tied=tied)
    with open_checkpoint(tiny.path) as checkpoint:
        config, theirs = read_config(checkpoint), tiny.model.config
    assert (config.num_layers, config.num_heads, config.num_kv_heads, config.head_dim) == (2, 4, 2, 16)
    assert (config.vocab_size, config.ffn_size) == (theirs.vocab_size, theirs.intermediate_size)
    assert config.biased == (set("qkv") if architecture == "qwen2" else set())
    assert (config.tied_head, config.windows) == (tied, (0,))


def test_what_may_be_left_out() -> None:
    config = config_of({"llama.attention.head_count_kv": ABSENT})
    assert (config.num_kv_heads, config.head_dim) == (4, 16)
    assert {layer.rope for layer in config.layers} == {plain(10000.0, 16)}


def test_heads_may_be_wider_than_their_share() -> None:
    heads = {"llama.attention.head_count": 3, "llama.attention.head_count_kv": 3}
    config = config_of(heads | {"llama.attention.key_length": 32})
    assert config.head_dim == 32 and config.layers[0].rope == plain(10000.0, 32)


def test_part_of_a_head_may_be_rotated_where_rows_are_in_halves_order() -> None:
    qwen2 = {key.replace("llama.", "qwen2."): value for key, value in METADATA.items()}
    config = config_of(qwen2 | {"general.architecture": "qwen2", "qwen2.rope.dimension_count": 8})
    assert config.layers[0].rope == plain(10000.0, 8)


BAD = [
    ("block_count", ABSENT, "llama.block_count is missing; it must be a whole number from 1"),
    ("block_count", 0, "llama.block_count is 0"),
    ("block_count", -2, "llama.block_count is -2"),
    ("block_count", 2.0, "llama.block_count is 2.0"),
    ("block_count", True, "llama.block_count is True"),
    ("block_count", "2", "llama.block_count is '2'"),
    ("block_count", 3, "llama.block_count is 3; it must be 2"),
    ("block_count", 2**63, "llama.block_count is 9223372036854775808"),
    ("embedding_length", 0, "embedding_length is 0"),
    (
        "embedding_length",
        2**32 - 1,
        "embedding_length is 4294967295; it must be a whole",
    ),
    ("attention.head_count", 0, "head_count is 0"),
    ("attention.head_count", 5, "head_count_kv is 2; it must be such that 2 divides 5"),
    ("attention.head_count", 6, "head_count is 6; it must be such that 6 divides 64"),
    ("attention.head_count_kv", 0, "head_count_kv is 0"),
    ("attention.head_count_kv", 3, "head_count_kv is 3; it must be such that 3 divides 4"),
    ("attention.head_count_kv", 8, "head_count_kv is 8; it must be a whole number from 1 to 4"),
    ("attention.key_length", 0, "key_length is 0"),
    ("attention.key_length", 2**40, "key_length is 1099511627776"),
    ("rope.dimension_count", 18, "dimension_count is 18; it must be a whole number from 1 to 16"),
    ("rope.dimension_count", 15, "dimension_count is 15; it must be such that 2 divides 15"),
    ("feed_forward_length", ABSENT, "feed_forward_length is missing"),
    ("context_length", 0, "context_length is 0"),
    ("attention.layer_norm_rms_epsilon", ABSENT, "layer_norm_rms_epsilon is missing"),
    ("attention.layer_norm_rms_epsilon", 0.0, "is 0.0; it must be a number above 0, up to 1"),
    ("attention.layer_norm_rms_epsilon", math.nan, "is nan"),
    ("attention.layer_norm_rms_epsilon", -1e-5, "is -1e-05"),
    ("rope.freq_base", math.inf, "freq_base is inf"),
    ("rope.freq_base", -1.0, "freq_base is -1.0"),
    ("rope.freq_base", "1e4", "freq_base is '1e4'"),
]


@pytest.mark.parametrize("key,value,text", BAD, ids=[f"{key} {value!r:.9}" for key, value, _ in BAD])
def test_bad_keys(key: str, value: Any, text: str) -> None:
    with pytest.raises(BadCheckpoint) as raised:
        config_of({f"llama.{key}": value})
    assert text in str(raised.value) and "some.gguf" in str(raised.value)


UNSERVED = [
    ("general.architecture", "mamba", "its architecture is 'mamba'; these are served: llama, qwen2, qwen3,"),
    ("general.architecture", ABSENT, "its architecture is 'None'"),
    ("general.architecture", ["llama"], "its architecture is"),
    (
        "llama.rope.scaling.type",
        "dynamic",
        "llama.rope.scaling.type is 'dynamic'; these are served: none, lin",
    ),
    ("llama.rope.scale_linear", 4.0, "rope.scale_linear is 4.0"),
    ("llama.expert_gating_func", 2, "expert_gating_func is 2; only 1 is served"),
    ("llama.attention.causal", False, "causal is False; only True is served"),
    ("llama.attention.sliding_window", 4096, "sliding_window is 4096"),
    ("llama.attention.head_count_kv", [2, 4], "head_count_kv differs from layer to layer"),
    ("llama.attention.value_length", 32, "value_length is 32; only 16"),
    ("llama.rope.dimension_count", 8, "dimension_count is 8; only 16, a whole head, is served"),
]


@pytest.mark.parametrize(
    "key,value,text", UNSERVED, ids=[f"{key} {value!r:.9}" for key, value, _ in UNSERVED]
)
def test_unserved(key: str, value: Any, text: str) -> None:
    with pytest.raises(UnsupportedModel) as raised:
        config_of({key: value})
    assert text in str(raised.value) and "some.gguf" in str(raised.value)


@pytest.mark.parametrize(
    "name",
    ["rope_freq.weight", "blk.0.attn_q_norm.weight", "blk.0.ffn_gate_inp.weight", "blk.0.attn_norm.bias"],
)
def test_tensors_that_would_be_left_out_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedModel, match=name):
        config_of(names=(name,))


def test_neutral_values_are_fine() -> None:
    config_of({"llama.rope.scaling.type": "none", "llama.expert_count": 0})


def test_vocabulary_and_embedding_must_agree() -> None:
    with pytest.raises(BadCheckpoint, match=r"2 tokens and 3 rows of token_embd.weight"):
        config_of({"tokenizer.ggml.tokens": ["a", "b"]})
    with pytest.raises(BadCheckpoint, match="no vocabulary"):
        config_of({"tokenizer.ggml.tokens": ABSENT})
    checkpoint: Any = Checkpoint({}, ())
    del checkpoint.tensors["token_embd.weight"]
    with pytest.raises(BadCheckpoint, match=r"no matrix token_embd.weight"):
        read_config(checkpoint)


def test_biases_of_a_llama_are_taken() -> None:
    assert config_of(names=("blk.0.attn_q.bias",)).biased == {"q"}
    assert not config_of().biased
